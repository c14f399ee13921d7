"""Files without a header, with one over three lines, and with prices as whole numbers: known by their shape.

Sources: the download pages and export dialogues of the named programs; headers are facts, and are compared as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from trainer.data.readers.column_names import PRICES, Columns
from trainer.data.readers.forms.by_content import TRADES
from trainer.data.readers.forms.naming import plain
from trainer.data.readers.forms.spellings import SPELLINGS
from trainer.runtime.errors import TrainerError

SEPARATORS = ",;\t|"
EMPTY = " ,;\t|\"'\r\n"  # of a line that holds nothing: a spreadsheet writes rows of empty cells
PREAMBLE_LINES = 20  # in front of a header, at most
OHLCV = ("open", "high", "low", "close", "volume")
USUAL = (("open", 0), ("high", 1), ("low", 2), ("close", 3))
BINANCE = (
    "open_time", *OHLCV, "close_time", "quote_volume", "trades", "taker_base", "taker_quote", "ignore",
)  # fmt: skip
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
BARE_CLOCK = re.compile(r"([01]\d|2[0-3])[0-5]\d([0-5]\d)?")  # 0930, as Portara and TickData write it
METATRADER = re.compile(r"\d{4}\.\d{2}\.\d{2}( \d{2}:\d{2})?")
EPOCH = re.compile(r"\d{10}(\d{3}){0,3}")
DATED = re.compile(r"\d{4}[-./]?\d{2}[-./]?\d{2}([ T].*)?|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}([ T].*)?|\d{9,19}")
FIXED_POINT = {"rtype", "publisher_id", "instrument_id"}  # Databento's CSV: prices in units of 1e-9, as it documents


@dataclass(frozen=True, kw_only=True)
class Header:
    """names: of the columns; line: the header's last one, 0 for none; chosen: columns of roles, as they were given."""

    names: tuple[str, ...]
    line: int
    chosen: dict[str, str]
    known_as: str | None = None


def first_line(lines: Sequence[str]) -> int | None:
    """Return the number of the header's or first bar's line, from 1; None where all lines are blank.

    Lines of a few cells in front of one with a bar's six columns are no header: a site's address, `sep=;`, comments.

    Args:
        lines: the first lines of the file.
    """
    written = [number for number, line in enumerate(lines, 1) if line.strip(EMPTY)]
    named = next((number for number in written[:PREAMBLE_LINES] if _names_prices(lines[number - 1])), None)
    if named is not None and not is_data(_split(lines[written[0] - 1])):
        return named
    wide = [number for number in written[:PREAMBLE_LINES] if _width(lines[number - 1]) >= len(OHLCV)]
    if not wide or any(_width(lines[number - 1]) > 2 for number in written if number < wide[0]):
        return next(iter(written), None)
    return wide[0]


def _split(line: str) -> list[str]:
    separator = max(SEPARATORS, key=line.count)
    return [cell.strip().strip('"').strip() for cell in line.split(separator)]


def _names_prices(line: str) -> bool:
    """Return whether a line names open, high, low and close, each by a word of its own."""
    known = {plain(cell) for cell in _split(line)}
    return all(known & {*SPELLINGS[role]} for role in PRICES) and len(known) > len(PRICES)


def _width(line: str) -> int:
    """Return the number of cells without the empty ones at the end, which spreadsheets add up to the widest line."""
    return 1 + max(line.rstrip(f"{mark} \r\n").count(mark) for mark in SEPARATORS)


def find_header(rows: Sequence[Sequence[str]], number: int, where: str, chosen: Mapping[str, str]) -> Header:
    """Return the header; `rows` are the cells of the first lines, of which the first has this `number`.

    Args:
        rows: cells of the first lines.
        number: line number of the first of `rows`, from 1.
        where: path of the file, for messages.
        chosen: column of a role, by its name or its number.

    Raises:
        TrainerError: RM730 for a file without a header whose columns are not known by their number and kind.
    """
    first = rows[0]
    if is_data(first):
        return _without(rows, where, chosen)
    begin = _numbered_from(first)
    if begin is not None and not chosen and len(rows) > 1 and is_data(rows[1][begin:]):
        bare = _without([row[begin:] for row in rows[1:]], where, chosen)
        return replace(bare, names=(*("row",) * begin, *bare.names), line=number, known_as=f"{bare.known_as}, numbered")
    if is_yfinance(rows):
        return Header(
            names=("Date", *first[1:]), line=number + 2, chosen=dict(chosen), known_as="yfinance, three lines"
        )
    return Header(names=_with_front(rows), line=number, chosen=dict(chosen))


def _with_front(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the header's names, and one more where all rows have one cell more: a clock's, or that of R's row names.

    Args:
        rows: cells of the first lines.
    """
    first, *others = rows
    longer = others and all(len(row) == len(first) + 1 and row[-1] and DATED.fullmatch(row[0]) for row in others)
    if not longer or len(first) < len(OHLCV):
        return tuple(first)
    return (first[0], "time", *first[1:]) if all(_is_clock(row[1]) for row in others) else ("", *first)


def is_data(cells: Sequence[str]) -> bool:
    """Return whether a first line is a bar: a date or an epoch in front, and at least four numbers, no word."""
    numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
    return len(numbers) >= 4 and any(DATED.fullmatch(cell) for cell in cells[:4])


def is_yfinance(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether these are the three lines of yfinance since 0.2.51: Price, Ticker, Date."""
    heads = [plain(row[0]) for row in rows[:3]]
    return heads[:2] == ["price", "ticker"] and heads[2:] in (["date"], ["datetime"])


def _numbered_from(cells: Sequence[str]) -> int | None:
    """Return where the names 0, 1, 2 ... begin that pandas gives to columns without any; None for other headers."""
    begin = int(cells[0] == "")
    named = [str(place) for place in range(len(cells) - begin)]
    return begin if len(named) > len(OHLCV) and list(cells[begin:]) == named else None


def _without(rows: Sequence[Sequence[str]], where: str, chosen: Mapping[str, str]) -> Header:
    cells = rows[0]
    numbers = tuple(str(place + 1) for place in range(len(cells)))
    if chosen:
        return Header(names=numbers, line=0, chosen=dict(chosen), known_as="no header, --columns")
    names, known_as = _by_shape(cells)
    what = f"the first line is a bar of {len(cells)} cells, not a header: {', '.join(cells[:4])} ..."
    if not names:
        raise TrainerError("RM730", what=what, where=where, next=numbered(rows))
    begin = names.index("open")
    if not any(_is_bar(row[begin : begin + 4]) for row in rows if is_data(row)):
        shown = ", ".join(cells[begin : begin + 4])
        what = f"there is no header, and cells {begin + 1} to {begin + 4} are not open, high, low and close: {shown}"
        raise TrainerError("RM730", what=what, where=where, next=numbered(rows))
    return Header(names=names, line=0, chosen={}, known_as=f"no header, {known_as}")


def _by_shape(cells: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the columns' names of a bar without a header and whose layout it is; no names for an unknown one."""
    if len(cells) == len(BINANCE) and re.fullmatch(r"\d{13}|\d{16}", cells[0]):
        return BINANCE, "Binance klines"
    date = next(place for place, cell in enumerate(cells) if DATED.fullmatch(cell))
    words, behind = tuple(f"word {place + 1}" for place in range(date)), cells[date + 1 :]
    if any(NUMBER.fullmatch(cell) for cell in cells[:date]):
        return (), ""
    if len(behind) == 5:
        return (*words, "date", *OHLCV), "taken as date and OHLCV" if not words else "taken as words, date and OHLCV"
    if len(behind) == 6 and _is_clock(behind[0]):
        return (*words, "date", "time", *OHLCV), "taken as date, time and OHLCV" if words else "MetaTrader 4"
    return _by_counts(cells[0], behind) if len(behind) == 6 and not words else ((), "")


def _by_counts(date: str, behind: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the columns' names of a bar with a count behind its volume, and whose layout it is; none for others."""
    if EPOCH.fullmatch(date) and behind[5].isdecimal():
        return ("date", *OHLCV, "trades"), "Kraken OHLCVT"
    if METATRADER.fullmatch(date) and all(map(str.isdecimal, behind[4:])):
        return ("date", *OHLCV[:-1], "tickvol", "vol"), "MetaTrader 5"
    return (), ""


def numbered(rows: Sequence[Sequence[str]]) -> str:
    """Return the option that names the columns of bars without a header, as far as their numbers show them.

    Of four prices the largest is the high and the smallest the low; the other two are taken for open and close.

    Args:
        rows: cells of the first lines.
    """
    cells = rows[0]
    day = next(place for place, cell in enumerate(cells) if DATED.fullmatch(cell))
    begin = day + 1 + (day + 1 < len(cells) and bool(_is_clock(cells[day + 1])))
    prices = [
        [float(cell.replace(",", ".")) for cell in row[begin : begin + 4] if NUMBER.fullmatch(cell)] for row in rows
    ]
    if len(cells) - begin < 5:
        return TRADES
    prices = [row for row in prices if len(row) == 4 and max(row) > min(row)]
    usual = all(_is_bar([*map(str, row)]) for row in prices)
    if len(set(order := [USUAL if usual else _order(row) for row in prices])) != 1:
        return ""
    roles = {"date": day, **({"time": begin - 1} if begin > day + 1 else {})}
    roles |= {role: begin + place for role, place in order[0]} | {"volume": begin + 4}
    named = ",".join(f"{role}={place + 1}" for role, place in roles.items())
    return (
        f"By their size these may be --columns {named}: compare with where the file is from; volume=none for no volume."
    )


def _order(prices: Sequence[float]) -> tuple[tuple[str, int], ...]:
    """Return the place of open, high, low and close among four prices, open in front of close."""
    high, low = max(range(4), key=lambda at: prices[at]), min(range(3, -1, -1), key=lambda at: prices[at])
    begin, end = [at for at in range(4) if at not in (high, low)]
    return ("open", begin), ("high", high), ("low", low), ("close", end)


def _is_clock(cell: str) -> bool:
    return bool(CLOCK.fullmatch(cell) or BARE_CLOCK.fullmatch(cell))


def _is_bar(cells: Sequence[str]) -> bool:
    """Return whether four cells can be open, high, low and close."""
    if len(cells) < 4 or not all(NUMBER.fullmatch(cell) for cell in cells):
        return False
    begin, high, low, end = (float(cell.replace(",", ".")) for cell in cells)
    return low <= min(begin, end) and high >= max(begin, end)


def fixed_point(columns: Columns, table: pl.DataFrame) -> float:
    """Return what prices are multiplied by: 1e-9 where the file is Databento's and prices are whole numbers."""
    if not {plain(name) for name in columns.names} >= FIXED_POINT:
        return 1.0
    cells = [table[:, columns.place[name]].drop_nulls() for name in PRICES]
    return 1e-9 if all(bool(each.str.contains(r"^\s*\d{6,}\s*$").all()) for each in cells) else 1.0
