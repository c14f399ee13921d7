"""A second file whose values are joined to bars as of each bar's end: never one that was not known by then.

A value is known at the end of its own bar; that of a day, such as Cboe's VIX close, from the next midnight on. So a
day's close is joined to no bar of that day, and a minute's to the bar of that minute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.config.choices import BarTime, JoinOutside
from trainer.data.bar import Bars, Dates, Floats
from trainer.data.readers.arrow import is_columnar, read_columnar
from trainer.data.readers.column_names import named_zone
from trainer.data.readers.forms.naming import plain
from trainer.data.readers.forms.plain_table import plain_table
from trainer.data.readers.forms.spellings import CLOCK, SPELLINGS
from trainer.data.readers.numbers import numbers_of
from trainer.data.readers.stream import line_blocks
from trainer.data.readers.timestamps import falls, find_format, parse
from trainer.data.sessions import instants
from trainer.runtime.errors import TrainerError, suggestion

ROLE = "vix_close"
DAY = np.timedelta64(86_400, "s")
LONGEST_HOLIDAY = 5 * DAY  # between two days with a close: a weekend and two holidays
STEPS = 10  # of the series that auto tolerates between minutes
BLOCK = 100_000  # rows
VALUES = (*SPELLINGS[ROLE], "vixcls", *SPELLINGS["close"], "value")
KNOWN_OF_DAYS = "from the midnight after its day"  # in a run's record
NO_VALUE = "."  # how FRED writes a holiday


@dataclass(frozen=True, kw_only=True)
class Join:
    """How a second file is joined. `tolerance` in seconds, None for auto; `zone` of times without an offset.

    stamp: what the bars' times stamp. own_stamp: what those of the second file stamp; None for the same.
    """

    path: Path
    outside: JoinOutside = "carry"
    tolerance: int | None = None
    stamp: BarTime = "begin"
    own_stamp: BarTime | None = None
    zone: str = "America/New_York"
    column: str | None = None

    def as_list(self) -> list[Any]:
        """Return all that decides which value a bar gets, in JSON's types; the file's name is no part of it."""
        own = [self.own_stamp] if self.own_stamp not in (None, self.stamp) else []
        return [self.outside, self.tolerance, self.stamp, self.zone, self.column, *own]

    @property
    def stamped(self) -> BarTime:
        """What the times of the second file stamp."""
        return self.own_stamp or self.stamp


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values in the order in which they are known: `known` (values,) in UTC; one counts up to the age `tolerance`."""

    join: Join
    known: Dates
    values: Floats
    days: bool
    tolerance: np.timedelta64
    column: str
    sha256: str

    def places(self, ends: Dates) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for each end of a bar (bars,) the place of the last value known, whether none is, or an old one."""
        place = np.searchsorted(self.known, ends, side="right").astype(np.int64) - 1
        none = place < 0
        place = np.maximum(place, 0)
        return place, none, (ends - self.known[place] > self.tolerance) & ~none


@dataclass(kw_only=True)
class Joining:
    """The joining of one pass over the bars, with what it came to in bars."""

    series: Series
    step: np.timedelta64
    joined: int = 0
    carried: int = 0
    left_out: int = 0

    def ends(self, date: Dates, *, days: bool) -> Dates:
        """Return when bars are over, in UTC.

        Args:
            date: time of each bar as it was read, shape (bars,).
            days: the bars are days.
        """
        if days:
            return _midnight_after(date, self.series.join.zone)
        return np.asarray(date + self.step) if self.series.join.stamp == "begin" else date

    def of(self, bars: Bars, *, days: bool) -> Bars:
        """Return the bars with their values; those without one are left out, refused, or get an old one.

        Args:
            bars: bars without the column.
            days: they are days.

        Raises:
            TrainerError: RM581 for the first bar without a value under the policy `error`.
        """
        series = self.series
        place, none, old = series.places(self.ends(bars.date, days=days))
        outside = none | old
        if series.join.outside == "error" and outside.any():
            raise _no_value(series, bars.date[int(outside.argmax())], none=bool(none[int(outside.argmax())]))
        kept = ~outside if series.join.outside == "drop" else ~none
        self.joined += int((kept & ~old).sum())
        self.carried += int((kept & old).sum())
        self.left_out += int((~kept).sum())
        with_values = replace(bars, vix_close=series.values[place])
        return with_values if kept.all() else with_values.where(kept)

    def as_dict(self) -> dict[str, Any]:
        """Return what was joined and what it came to, in JSON's types."""
        series = self.series
        return {
            "name": series.join.path.name,
            "sha256": series.sha256,
            "column": series.column,
            "known": KNOWN_OF_DAYS if series.days else _known_from(series.join),
            "tolerance_seconds": int(series.tolerance.astype(np.int64)),
            "outside": series.join.outside,
            "bars_joined": self.joined,
            "bars_with_an_older_value": self.carried,
            "bars_left_out": self.left_out,
        }


def usual_step(date: Dates) -> np.timedelta64:
    """Return the most frequent step between times in order (rows,); a second where there are fewer than two."""
    steps, counts = np.unique(np.diff(date), return_counts=True)
    return np.timedelta64(int(steps[counts.argmax()].astype(np.int64)) if len(steps) else 1, "s")


def open_series(join: Join) -> Series:
    """Read the second file.

    Raises:
        TrainerError: RM511 without a value, RM512 without columns for time and value, RM513 for a cell that is
            neither a number nor empty.
    """
    table = _table(join.path)
    date, clock, value = _columns(table.columns, join)
    text = _times(table, date, clock)
    form = find_format(text, f"{join.path}, row 1")
    if falls(text, form):  # an hour that clocks show twice is known by the row before
        table, text = table.reverse(), text.reverse()
    numbers, empty, wrong = numbers_of(_without_dots(table[:, value]), _decimal(table[:, value]))
    if wrong.any():
        row = int(wrong.argmax())
        what = f"{table[:, value][row]!r} in column {table.columns[value]!r} is no number"
        raise TrainerError("RM513", what=what, where=f"{join.path}, row {row + 1}")
    zone = named_zone([table.columns[place] for place in (date, clock) if place is not None])
    times = parse(text, form, form.zone or zone or join.zone, None)
    kept = ~(empty | times.unreadable)
    if not kept.any():
        raise TrainerError("RM511", what="the joined file holds no value", where=str(join.path))
    order = np.argsort(times.at[kept], kind="stable")
    at, values = times.at[kept][order], numbers[kept][order]
    last = np.concatenate([at[1:] != at[:-1], [True]])  # of equal times the last one stands
    at, values = at[last], values[last]
    known = _midnight_after(at, join.zone) if form.days else _ends(at, join)
    return Series(
        join=join,
        known=known,
        values=values,
        days=form.days,
        tolerance=_tolerance(join, at, days=form.days),
        column=table.columns[value],
        sha256=hashlib.sha256(join.path.read_bytes()).hexdigest(),
    )


def _known_from(join: Join) -> str:
    why = "as the bars' by --bar-time" if join.own_stamp is None else "by --join-time"
    return f"from the end of its bar, whose {join.stamped} is its time ({why})"


def _tolerance(join: Join, at: Dates, *, days: bool) -> np.timedelta64:
    if join.tolerance is not None:
        return np.timedelta64(join.tolerance, "s")
    return LONGEST_HOLIDAY if days else STEPS * usual_step(at)


def _ends(at: Dates, join: Join) -> Dates:
    return np.asarray(at + usual_step(at)) if join.stamped == "begin" else at


def _midnight_after(days: Dates, zone: str) -> Dates:
    """Return the instants at which the days after these begin in `zone`."""
    return instants((days.astype("M8[D]") + 1).astype("M8[s]"), zone)[0]


def _table(path: Path) -> pl.DataFrame:
    """Return the cells of a file: text as bars are read, packed and in older encodings, too; else as stored."""
    where = str(path)
    try:
        if is_columnar(path):
            tables = [table for _, table in read_columnar(path, BLOCK)]
            return pl.concat(tables) if tables else pl.DataFrame()
        text = b"".join(block.text for block in line_blocks(path, BLOCK))
        return plain_table(text, {*SPELLINGS["date"], *VALUES} - {""})
    except pl.exceptions.PolarsError as error:
        raise TrainerError("RM511", what=f"the joined file cannot be read: {error}", where=where) from None
    except TrainerError as error:
        advice = error.next if error.code != "RM510" or path.exists() else "Check the path that --join names."
        raise TrainerError(error.code, what=f"the joined file: {error.what}", where=where, next=advice) from error


def _columns(names: Sequence[str], join: Join) -> tuple[int, int | None, int]:
    """Return the places of the day or time, of the time of day where it stands apart, and of the value."""
    known = [plain(name) for name in names]
    date = next((known.index(word) for word in SPELLINGS["date"] if word and word in known), 0)
    clock = next((known.index(word) for word in CLOCK if word in known and known.index(word) != date), None)
    if join.column is not None and join.column in names:
        value = list(names).index(join.column)
    elif join.column is not None:
        value = int(join.column) - 1 if join.column.isdecimal() else -1
    else:
        value = next((known.index(word) for word in VALUES if word in known), -1)
        rest = [place for place in range(len(names)) if place not in (date, clock)]
        value = rest[0] if value < 0 and len(rest) == 1 else value
    if not 0 <= value < len(names) or value == date:
        hint = suggestion(join.column or "close", list(names))
        advice = f"Say which column it is: --columns {ROLE}=NAME names one of the joined file; a number does, too."
        raise TrainerError("RM512", what=f"no column of values; {hint}", where=str(join.path), next=advice)
    return date, clock, value


def _times(table: pl.DataFrame, date: int, clock: int | None) -> pl.Series:
    day = _text(table[:, date])
    return day if clock is None else day + " " + _text(table[:, clock])


def _text(column: pl.Series) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.to_string("iso:strict")
    return column.cast(pl.String).str.strip_chars()


def _without_dots(column: pl.Series) -> pl.Series:
    return column.replace(NO_VALUE, "") if column.dtype == pl.String else column


def _decimal(column: pl.Series) -> str:
    text = column.drop_nulls().head(1000)
    if text.dtype != pl.String:
        return "."
    commas, points = (int(text.str.contains(mark, literal=True).sum()) for mark in ",.")
    return "," if commas > points else "."


def _no_value(series: Series, date: np.datetime64, *, none: bool) -> TrainerError:
    what = f"{'no value is known' if none else 'the last known value is too old'} at the bar of {date} UTC"
    why = f"the joined file begins at {series.known[0]} UTC; a value counts for {series.tolerance}"
    advice = "--join-outside carry takes an older value, drop leaves such bars out; --join-tolerance sets the age."
    return TrainerError("RM581", what=what, where=str(series.join.path), why=why, next=advice)
