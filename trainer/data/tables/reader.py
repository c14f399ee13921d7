"""Any table with a header: CSV (plain or packed), Parquet or Arrow, cell by cell, with the line of each row."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors

from trainer.config.choices import BadRowPolicy
from trainer.data.readers.arrow import PARQUET, is_columnar
from trainer.data.readers.headers import EMPTY, NUMBER
from trainer.data.readers.stream import kind_of, line_blocks
from trainer.data.tables.column_store import ColumnStore
from trainer.data.tables.ragged import Ragged
from trainer.runtime.errors import TrainerError

SEPARATORS = ",;\t|"
SEPARATOR = re.compile(r"sep=.?\s*$", re.IGNORECASE)  # as Excel writes in front
LONG = 100_000  # characters of a line that are looked at; csv takes cells of 131,072
HEAD = 50  # lines among which the header stands
END = r"(?!\s*([,;\t|]|$))"  # of a cell does not follow
ESCAPED = re.compile(rf'\\"{END}(?!"{END})')
BACKSLASHED = re.compile(r'(?<!\\)\\"')  # all of such a line, also one in front of a comma within the cell
SHOWN = 5  # names that stand twice
NO_HEADER = "The first line looks like a row: put a line with the columns' names in front of it."
MOSTLY = 0.6  # of the first lines, which have the table's number of cells where lines in front of it are left out
UNCLOSED = 'A " opens a cell there that no other " closes: correct the line; within quotes a " is written twice.'
CELLS = 1_000_000  # that are Python's own strings at a time, some 70 bytes each


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A table as it stands: text from CSV, typed columns from Parquet and Arrow.

    types: by the columns' names, in their order. column: returns the cells of one, (rows,).
    line: (rows,) of each row in its file, from 1; a `unit` is a line of text, or a row of a typed file.
    read: how the file was understood, in JSON's types. ragged: lines left out for another number of cells.
    """

    types: Mapping[str, pl.DataType]
    column: Callable[[str], pl.Series]
    line: NDArray[np.int64]
    unit: str
    path: Path
    read: dict[str, Any]
    ragged: tuple[int, ...] = ()

    def place(self, row: int) -> str:
        """Return file and line of a row, for a message."""
        return f"{self.path}, {self.unit} {self.line[row]}"


def read_cells(
    path: Path, chunk: int = 50_000, *, folder: Path | None = None, on_bad_row: BadRowPolicy | None = None
) -> Cells:
    """Read the table at `path`: into memory, or with a `folder` so that no more than a column is in memory at a time.

    Text is then stored in files without a name in `folder`; a typed file is read anew for each column.

    Args:
        path: CSV, Parquet or Arrow file.
        chunk: lines to read at a time.
        folder: folder for columns that are kept on disk; None reads into memory.
        on_bad_row: what to do with lines of another number of cells than the header; None where there is no choice.

    Raises:
        TrainerError: RM510 for what is no table, RM511 for one without rows, RM516 for a damaged file, RM580 for
            a line with another number of cells or a header that names a column twice.
        OSError: where `folder` has no room.
    """
    ragged = Ragged(policy=on_bad_row, path=path)
    cells = nameless(_typed(path, folder) if is_columnar(path) else _text(path, chunk, folder, ragged))
    if ragged.first and not len(cells.line):
        raise ragged.first
    if not len(cells.line):
        raise TrainerError("RM511", what="the file holds no row", where=str(path))
    return cells


def nameless(cells: Cells) -> Cells:
    """Return `cells` whose columns carry no name: polars' own methods take one like `^a$` for a pattern."""
    return replace(cells, column=lambda name: cells.column(name).alias(""))


def _typed(path: Path, folder: Path | None) -> Cells:
    with path.open("rb") as file:
        parquet = file.read(4) == PARQUET
    frame = pl.scan_parquet(path) if parquet else pl.scan_ipc(path)
    if folder is None:
        frame = _collected(frame, path).lazy()
    rows = _collected(frame.select(pl.len()), path).item()
    frame = frame.with_columns(selectors.categorical().cast(pl.String), selectors.enum().cast(pl.String))
    return Cells(
        types=frame.collect_schema(),
        column=lambda name: _collected(frame.select(selectors.by_name(name)), path)[name],
        line=np.arange(1, rows + 1),
        unit="row",
        path=path,
        read={"format": "Parquet" if parquet else "Arrow"},
    )


def _collected(frame: pl.LazyFrame, path: Path) -> pl.DataFrame:
    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        why = str(error).splitlines()[0][:200]
        raise TrainerError("RM516", what="the file is damaged or cut off", where=str(path), why=why) from error


def _text(path: Path, chunk: int, folder: Path | None, ragged: Ragged) -> Cells:
    lines = _lines(path)
    head, before = _head(lines)
    if not head:
        raise TrainerError("RM511", what="the file holds no row", where=str(path))
    separator = max(SEPARATORS, key=head[0].count)
    text = map(_doubled, itertools.chain(head, lines))
    reader = csv.reader(text, delimiter=separator, skipinitialspace=True, strict=True)
    written = next(_rows(reader, path, before))
    names, numbered = _header(written, f"{path}, line {reader.line_num + before}")
    column, line = _gathered(_parts(_numbered(reader, len(names), path, before, ragged), names, chunk), names, folder)
    empty = {name for name, cell in zip(names, written, strict=True) if not cell.strip() and _is_blank(column(name))}
    types = {name: pl.String() for name in names if name not in empty}
    encoding = kind_of(path)[1]
    read: dict[str, Any] = {"format": "CSV", "separator": separator} | (
        {} if encoding.startswith("utf") else {"encoding": encoding}
    )
    read |= {"lines_in_front": before} if before else {}
    read |= {"numbered_names": numbered} if numbered else {}
    lines_out = tuple(ragged.lines)
    return Cells(types=types, column=column, line=line, unit="line", path=path, read=read, ragged=lines_out)


def _doubled(line: str) -> str:
    """Return a line whose quotes within a cell are written twice; Spark and MySQL write a backslash in front of them.

    A backslash stays in front of a cell's last quote, as in a path, and in front of a quote that is written twice.
    """
    return BACKSLASHED.sub('""', line) if '\\"' in line and ESCAPED.search(line) else line


def _rows(reader: Any, path: Path, before: int) -> Iterator[list[str]]:
    """Yield the rows; raises RM510 with the line on which a row begins whose quotes are wrong."""
    begin = reader.line_num + 1
    try:
        for row in reader:
            yield row
            begin = reader.line_num + 1
    except csv.Error as error:
        where = f"{path}, line {begin + before}"
        raise TrainerError("RM510", what="a row is no CSV text", where=where, why=str(error), next=UNCLOSED) from error


def _head(lines: Iterator[str]) -> tuple[list[str], int]:
    """Return the first lines from the header on, and how many stand in front of it.

    Args:
        lines: lines of the file. Blank ones, `sep=;`, and comments of another number of cells than the next line are
            no header.
    """
    first = list(itertools.islice(lines, HEAD))
    for place, line in enumerate(first):
        behind = next((row for row in first[place + 1 :] if row.strip(EMPTY) and not SEPARATOR.match(row)), line)
        comment = line.startswith("#") and _is_other_table(line, behind)
        if line.strip(EMPTY) and not comment and not SEPARATOR.match(line):
            begin = place + _titles(first[place:])
            return first[begin:], begin
    return [], len(first)


def _titles(lines: list[str]) -> int:
    """Return how many lines of one or two cells stand in front of a table of more, as offices put them there.

    Args:
        lines: the first lines from the first one that may be the header.
    """
    own = _widths(lines, max(SEPARATORS, key=lines[0].count))
    if own[0] > 1 and own.count(own[0]) >= MOSTLY * sum(width > 0 for width in own):
        return 0  # commas are in its texts, and other marks between its cells
    separator = max(SEPARATORS, key=lambda mark: sum(line.count(mark) for line in lines))
    widths = _widths(lines, separator)
    usual = max({*widths} - {0}, key=widths.count)
    if widths[0] > 2 or usual < 3 or widths.count(usual) < MOSTLY * sum(width > 0 for width in widths):
        return 0
    place = next(place for place, width in enumerate(widths) if width >= usual)  # rows may end with empty cells
    return 0 if any(NUMBER.fullmatch(cell.strip()) for cell in _split(lines[place], separator)) else place


def _widths(lines: list[str], separator: str) -> list[int]:
    return [_width(line, separator) if line.strip() else 0 for line in lines]


def _width(line: str, separator: str) -> int:
    """Return the number of cells of a line up to the last that holds something.

    Args:
        line: a line of the file.
        separator: mark between cells.
    """
    return max((place for place, cell in enumerate(_split(line, separator), 1) if cell.strip()), default=0)


def _split(line: str, separator: str) -> list[str]:
    # A carriage return within a line is refused by the module; the rows are read, and refused with their line, later.
    text = line[:LONG].rstrip("\r\n").replace("\r", " ")
    return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])


def _is_other_table(line: str, behind: str) -> bool:
    """Return whether the next line has another number of cells, counted with the separator of `line`."""
    separator = max(SEPARATORS, key=line.count)
    one, other = (_split(text, separator) for text in (line, behind))
    return len(one) != len(other) or (len(one) == 1 and any(mark in behind for mark in SEPARATORS))


def _is_blank(column: pl.Series) -> bool:
    return bool((column.str.strip_chars() == "").all())


def _gathered(
    parts: Iterator[tuple[pl.DataFrame, NDArray[np.int64]]], names: list[str], folder: Path | None
) -> tuple[Callable[[str], pl.Series], NDArray[np.int64]]:
    """Return what gives a column of all parts, and the line of each row."""
    store, held = (ColumnStore(names, folder) if folder else None), []
    lines = [np.empty(0, np.int64)]
    for part, numbers in parts:
        lines.append(numbers)
        store.add(part) if store else held.append(part)
    if store:
        return store.column, np.concatenate(lines)
    table = pl.concat(held) if held else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    return table.__getitem__, np.concatenate(lines)


def _header(written: list[str], where: str) -> tuple[list[str], list[str]]:
    """Return the columns' names, and those among them that got a number, as the same name stands before them.

    Args:
        written: cells of the header.
        where: the header's place, for the message.

    Raises:
        TrainerError: RM580 for a name that stands twice where the header seems to be a row.
    """
    names = [name.strip() or f"column {place}" for place, name in enumerate(written, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if not twice:
        return names, []
    if sum(bool(NUMBER.fullmatch(name)) for name in names) > len(names) / 2:
        shown = ", ".join(map(repr, twice[:SHOWN])) + (f" and {len(twice) - SHOWN} more" if len(twice) > SHOWN else "")
        raise TrainerError("RM580", what=f"columns have the same name: {shown}", where=where, next=NO_HEADER)
    found: list[str] = []
    for name in names:
        free = (f"{name} ({number})" for number in itertools.count(2))
        found.append(name if name not in found else next(each for each in free if each not in (*found, *names)))
    return found, [name for name, first in zip(found, names, strict=True) if name != first]


def _parts(
    numbered: Iterator[tuple[int, list[str]]], names: list[str], chunk: int
) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
    schema = dict.fromkeys(names, pl.String)
    most = max(1, min(chunk, CELLS // len(names)))
    while rows := list(itertools.islice(numbered, most)):
        lines, cells = zip(*rows, strict=True)
        columns = zip(*cells, strict=True)
        yield pl.DataFrame(dict(zip(names, columns, strict=True)), schema=schema), np.array(lines, np.int64)


def _numbered(reader: Any, width: int, path: Path, before: int, ragged: Ragged) -> Iterator[tuple[int, list[str]]]:
    first = True
    for row in _rows(reader, path, before):
        if len(row) == width or (len(row) > width and not any(cell.strip() for cell in row[width:])):
            yield reader.line_num + before, row[:width]
        elif row and row != [""]:
            ragged.settle(reader.line_num + before, len(row), width, first=first)
        first = False


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of the file; packed data that breaks off is an error, a last line without an end is none."""
    packed, _ = kind_of(path)
    for block in line_blocks(path, 50_000):
        if block.cut_off and packed != "none":
            raise TrainerError("RM516", what="the compressed data breaks off, or has no last line end", where=str(path))
        text = block.text.decode()
        yield from (line + "\n" for line in text.removesuffix("\n").split("\n"))
