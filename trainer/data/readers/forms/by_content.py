"""What cells show where names do not: the column of times, and data that is no series of bars."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl

from trainer.config.choices import BAR_TARGETS
from trainer.data.readers.forms.spellings import GLUED_TIMES, OTHER_TIMES
from trainer.data.readers.timestamps import find_format, parse
from trainer.runtime.errors import TrainerError

FIRST = np.datetime64("1980-01-01", "s")  # numbers that count seconds before it are volumes or identifiers
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
FIRST_OF_ROWS = 1_000_000  # 20240304 and 20240305 are days
RANGE = {"open", "high", "low"}
TIME = re.compile(r"\d{8} \d{2}:?\d{2}|\d{4}-\d\d-\d\d[ T]\d\d:|\d{13}")
CALENDAR = ("year", "month", "day")
TRADES = "These are single trades or quotes, not bars: make bars of a fixed time of them first, such as with pandas: "
TRADES += "DataFrame.resample('1min') with first, max, min and last of the price and the sum of the volume."
NO_RANGE = "One price a row is no bar, which needs open, high, low and close. `train --data FILE --target COLUMN` "
NO_RANGE += "learns a column of any table; where all four prices may be one, --columns takes a column several times."

TABLE = "If this is a table of anything else than bars, name the column to learn: `train --data FILE --target COLUMN`; "
TABLE += (
    "if it is one of bars, name its columns, or give their numbers: --columns date=NAME,open=NAME,high=NAME,low=NAME,"
)
TABLE += "close=NAME,volume=NAME, with volume=none where there is none."


def is_other_time(name: str) -> bool:
    """Return whether a name that is called a date or a time states when something other than a bar begins.

    Args:
        name: as names are compared: lower case, words joined by `_`.
    """
    words = name.split("_")
    return bool(OTHER_TIMES & {*words}) or any(word.startswith(GLUED_TIMES) for word in words)


def time_column(names: Sequence[str], table: pl.DataFrame, taken: Collection[int], *, clock: bool) -> int | None:
    """Return the place of the only column whose cells are times that rise or fall; None for none or several.

    Args:
        names: as names are compared.
        table: the first rows.
        taken: places of columns that are something else.
        clock: whether the time of day stands in another column, so that one day may follow itself.
    """
    free = [at for at, name in enumerate(names) if at not in taken and not is_other_time(name)]
    found = [at for at in free if _are_times(table[:, at], again=clock)]
    return found[0] if len(found) == 1 else None


def _are_times(cells: pl.Series, *, again: bool) -> bool:
    text = (cells.dt.to_string("iso:strict") if cells.dtype.is_temporal() else cells.cast(pl.String)).str.strip_chars()
    text = text.filter(text != "")
    if len(text) < 2:
        return False
    try:
        form = find_format(text, "")
    except TrainerError as error:
        return error.code == "RM574" and (again or text.n_unique() == len(text))
    times = parse(text, form, "UTC", None)
    steps = np.diff(times.at.astype(np.int64))
    rises, falls = (steps >= 0, steps <= 0) if again else (steps > 0, steps < 0)
    early = form.pattern.startswith("epoch") and bool((times.at < FIRST).any())
    return not times.unreadable.any() and not early and bool(rises.all() or falls.all())


def counts_rows(table: pl.DataFrame | None, place: int) -> bool:
    """Return whether a column's cells are the numbers of the rows, as pandas writes its index."""
    if table is None or len(table) < 2:
        return False
    number = table[:, place].cast(pl.String).str.strip_chars().cast(pl.Int64, strict=False)
    return not number.has_nulls() and bool((number.diff().drop_nulls() == 1).all()) and int(number[0]) < FIRST_OF_ROWS


def within_range(names: Sequence[str], place: Mapping[str, int], table: pl.DataFrame | None) -> str | None:
    """Return the only column without a role whose numbers lie between low and high of every row; None for no such one.

    Args:
        names: the header's cells.
        place: places by role, with high and low.
        table: the first rows.
    """
    if table is None or not len(table) or not {"high", "low"} <= place.keys():
        return None
    text = {at: table[:, at].cast(pl.String).str.strip_chars() for at in range(len(names))}
    numbers = {at: cells.cast(pl.Float64, strict=False) for at, cells in text.items()}
    high, low = numbers[place["high"]], numbers[place["low"]]
    found = [
        names[at]
        for at, each in numbers.items()
        if at not in place.values() and bool(((each >= low) & (each <= high)).fill_null(False).all())
    ]
    return found[0] if len(found) == 1 else None


AS_TABLE = "A table's column of that name is learned with `train --data FILE"


def no_bars(names: Sequence[str], known: Sequence[str], missing: Collection[str]) -> str:
    """Return the next step for a header of something else than bars, "" where nothing is known about it.

    Args:
        names: the header's cells.
        known: the same as names are compared.
        missing: roles without a column.
    """
    words = {word for name in known for word in name.split("_")}
    if {*missing} >= RANGE and ({"bid", "ask"} <= words or _is_trade(names)):
        return TRADES
    if {*missing} >= RANGE and {"date", "close"}.isdisjoint(missing) and not RANGE & words:
        return NO_RANGE
    if {*missing} >= {*RANGE, "close"} and len(names) > 1:
        named = next((name for name in names if name in BAR_TARGETS), None)
        return f"{AS_TABLE} --target {named} --features table`." if named else TABLE
    return ""


def _is_trade(names: Sequence[str]) -> bool:
    """Return whether the first line is a time with up to four numbers, too few for a bar, in place of a header."""
    numbers = [name for name in names if NUMBER.fullmatch(name)]
    return 0 < len(numbers) < 5 and any(TIME.match(name) for name in names)


def in_parts(known: Sequence[str]) -> bool:
    """Return whether year, month and day stand in columns of their own.

    Args:
        known: names as they are compared.
    """
    return {*CALENDAR} <= {*known}
