"""Read price bars from a CSV file; every mistake in it is an error with its line."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.errors import TrainerError, suggestion

NUMBERS = ("open", "high", "low", "close", "volume", "vix_close")
COLUMNS = ("date", *NUMBERS)
_ROW = np.dtype([("line", "i8"), ("date", "M8[s]"), *((name, "f8") for name in NUMBERS)])

Floats = NDArray[np.float64]
Dates = NDArray[np.datetime64]


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars in time order, oldest first; each array has shape (bars,) and cannot be written to.

    Prices are in the currency or points of the file, `volume` in shares or contracts, `vix_close` in
    VIX points (annualised per cent). `date` has second resolution: daily and minute bars are alike.
    """

    date: Dates
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    vix_close: Floats

    def __post_init__(self) -> None:
        for array in vars(self).values():
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.date)

    def __getitem__(self, rows: slice) -> Bars:
        return Bars(**{name: array[rows] for name, array in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """Where bars came from: the file's name, the SHA-256 of its bytes, and its recorded source if any."""

    name: str
    sha256: str
    source: str | None


def read_bars(path: Path) -> tuple[Bars, DataFile]:
    """Read the CSV at `path`; columns may stand in any order, further columns are ignored.

    Raises:
        TrainerError: RM510 to RM516, for a mistake in the file, with its line where it has one.
        OSError: where the system fails in a way that is no property of the file.
    """
    content = _content(path)
    table = np.fromiter(_rows(path, content), _ROW)
    if not len(table):
        raise TrainerError("RM511", what="the file holds no bar", where=str(path))
    bars = Bars(**{name: np.ascontiguousarray(table[name]) for name in COLUMNS})
    for code, what, holds in _rules(bars):
        if not holds.all():
            row = table[int(np.argmin(holds))]
            raise _error(code, path, row["line"], f"{what}: {', '.join(map(str, row.tolist()[1:]))}")
    digest = hashlib.sha256(content).hexdigest()
    return bars, DataFile(name=path.name, sha256=digest, source=_source(path.parent, digest))


def _error(code: str, path: Path, line: int, what: str) -> TrainerError:
    return TrainerError(code, what=what, where=f"{path}, line {line}")


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise TrainerError("RM510", what=str(error.strerror), where=str(path)) from error
    if content and not content.endswith(b"\n"):
        raise TrainerError("RM516", what="the file does not end with a line end", where=str(path))
    return content


def _rows(path: Path, content: bytes) -> Iterator[tuple[Any, ...]]:
    """Yield a `_ROW` for each line after the header."""
    lines = _lines(path, content)
    number, header = next(lines, (0, []))
    places = [_place(path, number, header, column) for column in COLUMNS] if header else []
    for number, cells in lines:
        if len(cells) != len(header):
            raise _error("RM513", path, number, f"{len(cells)} cells where the header has {len(header)}")
        try:
            date, *numbers = (cells[place].strip() for place in places)
            yield number, _date(date), *map(_number, NUMBERS, numbers)
        except ValueError as error:
            raise _error("RM513", path, number, str(error)) from error


def _lines(path: Path, content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line; blank lines are passed over but counted."""
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except (UnicodeDecodeError, csv.Error) as error:
        raise TrainerError("RM510", what="the file is no CSV text in UTF-8", where=str(path), why=str(error)) from error


def _place(path: Path, line: int, header: list[str], column: str) -> int:
    names = [name.strip().lower() for name in header]
    if column not in names:
        spare = [name for name in names if name not in COLUMNS]
        what = f"no column {column!r}; {suggestion(column, spare or names)}"
        raise _error("RM512", path, line, what)
    return names.index(column)


def _date(text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        date = None
    if date is None or date.tzinfo is not None:
        raise ValueError(f"{text!r} is no date such as 2014-01-03 or 2014-01-03 09:31 (without time zone)")
    return date


def _number(column: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} in column {column} is no number") from None


def _rules(bars: Bars) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield code, complaint and, per bar, whether the rule holds; NaN fails every comparison."""
    prices = np.stack([bars.open, bars.high, bars.low, bars.close, bars.vix_close])
    lowest, highest = prices.min(axis=0), prices.max(axis=0)
    later = np.concatenate([[True], bars.date[1:] > bars.date[:-1]])
    yield "RM515", "the date is not later than the one before", later
    yield "RM514", "a price or VIX is no finite number above zero", (lowest > 0) & (highest < np.inf)
    yield "RM514", "the volume is no finite number of zero or more", (bars.volume >= 0) & (bars.volume < np.inf)
    yield "RM514", "high is below low", bars.high >= bars.low
    yield "RM514", "open is outside low to high", (bars.low <= bars.open) & (bars.open <= bars.high)
    yield "RM514", "close is outside low to high", (bars.low <= bars.close) & (bars.close <= bars.high)


def _source(folder: Path, digest: str) -> str | None:
    """Return the line that SOURCE.md beside the data gives as source, if it speaks of exactly these bytes."""
    note = folder / "SOURCE.md"
    text = note.read_text(encoding="utf-8") if note.is_file() else ""
    stated = [line.removeprefix("Source: ") for line in text.splitlines() if line.startswith("Source: ")]
    return stated[0] if stated and digest in text else None
