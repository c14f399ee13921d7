"""Lines of a CSV file to rows: fast where lines are plain, cell by cell where they are quoted."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.readers.column_names import PRICES, Columns, find_columns
from trainer.data.readers.forms.last_line import BEFORE, is_whole
from trainer.data.readers.forms.marks import decimal_of
from trainer.data.readers.headers import EMPTY, SEPARATORS, find_header, first_line, fixed_point
from trainer.data.readers.stream import LineBlock, kind_of, line_blocks
from trainer.runtime.errors import TrainerError

SAMPLE_LINES = 1000
# Two letters and more begin a sentence; a bar that was cut off begins with its date. Chinese is written without spaces
WORDS = r"[^\W\d_]{2,}[ :]|\(\d+ rows?\)$|.*[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a file is written. `header` is the number of the header's last line, 0 where there is none.

    decimal: the mark of fractions. known_as: whose layout it is, where that is known by more than its header.
    scale: what prices are multiplied by. encoding: of the text, utf-8 or an older one.
    """

    separator: str
    decimal: str
    header: int
    columns: Columns
    known_as: str | None = None
    scale: float = 1.0
    encoding: str = "utf-8"


@dataclass(frozen=True, kw_only=True)
class TextRows:
    """Cells as text, (rows,) by column; `ragged` rows have another number of cells, given in `cells`.

    open_end: the last line is whole, though it has no line end.
    """

    line: NDArray[np.int64]
    table: pl.DataFrame
    cells: NDArray[np.int64]
    cut_off: bool
    open_end: bool = False

    def turned(self) -> TextRows:
        """Return the rows in opposite order."""
        return replace(self, line=self.line[::-1].copy(), table=self.table[::-1], cells=self.cells[::-1].copy())

    def ends_with_remark(self) -> bool:
        """Return whether the last row is one cell of words in a table of several columns."""
        if not len(self.cells) or self.cells[-1] != 1 or self.table.width < 2:
            return False
        return re.match(WORDS, str(self.table[-1, 0])) is not None

    def without_last(self) -> TextRows:
        """Return all rows but the last."""
        return replace(self, line=self.line[:-1], table=self.table[:-1], cells=self.cells[:-1])


def find_dialect(path: Path, chosen: Mapping[str, str] | None = None) -> tuple[Dialect, TextRows]:
    """Return how the file at `path` is written, and its first rows.

    Raises:
        TrainerError: RM510 to RM512, RM730, RM731, where there is no text, no column or no bar.
    """
    block, lines, number = _first_lines(path)
    header = lines[number - 1]
    separator = max(SEPARATORS, key=header.count)
    rows = [
        [cell.strip() for cell in _cells(line, separator, path)[0]]
        for line in lines[number - 1 : number + 2]
        if line.strip(EMPTY)
    ]
    found = find_header([_without_padding(row) for row in rows], number, f"{path}, line {number}", chosen or {})
    dialect = Dialect(
        separator=separator,
        decimal=".",
        header=found.line,
        columns=Columns(names=found.names, place={}, clock=None),
        known_as=found.known_as,
        encoding=kind_of(path)[1],
    )
    sample = text_rows(block, dialect, path)
    columns = find_columns(found.names, f"{path}, line {number}", found.chosen, sample.table)
    dialect = replace(dialect, columns=_with_volume(sample, columns))
    dialect = replace(dialect, decimal=_decimal(sample, dialect))
    return replace(dialect, scale=fixed_point(dialect.columns, sample.table)), sample


def _first_lines(path: Path) -> tuple[LineBlock, list[str], int]:
    """Return the first block of a file, its lines, and the number of the header among them, from 1.

    Raises:
        TrainerError: RM511 where there is no header, RM516 where the file ends before or inside of it.
    """
    block = next(line_blocks(path, SAMPLE_LINES), None)
    text = block.text.decode() if block else ""
    lines = [line + "\n" for line in text.removesuffix("\n").split("\n")] if text else []
    number = first_line(lines)
    if block is not None and block.cut_off and number is None:
        raise TrainerError("RM516", what="the file ends before its header", where=str(path))
    if block is None or number is None:
        raise TrainerError("RM511", what="the file holds no bar", where=str(path))
    if block.cut_off and number == len(lines):
        raise TrainerError("RM516", what="the file ends inside its header", where=str(path))
    return block, lines, number


def _without_padding(cells: list[str]) -> list[str]:
    """Return cells without two or more empty ones at the end, which a spreadsheet adds up to its widest line."""
    used = max((place for place, cell in enumerate(cells, 1) if cell), default=0)
    return cells if len(cells) - used < 2 else cells[:used]


def _with_volume(sample: TextRows, columns: Columns) -> Columns:
    """Return the columns with the second one of volumes where the first is zero or empty in all of the sample."""
    if columns.spare_volume is None:
        return columns
    first, spare = (sample.table[:, place] for place in (columns.place["volume"], columns.spare_volume))
    if _is_empty(first) and not _is_empty(spare):
        return replace(columns, place={**columns.place, "volume": columns.spare_volume})
    return columns


def _is_empty(cells: pl.Series) -> bool:
    return not cells.str.contains("[1-9]").any()  # whatever marks stand between digits


def _decimal(sample: TextRows, dialect: Dialect) -> str:
    """Return the decimal mark that the sample shows."""
    columns = dialect.columns
    prices = [sample.table[:, columns.place[name]] for name in PRICES]
    places = {columns.place.get("volume"), columns.spare_volume, columns.more_volume} - {None}
    return decimal_of(prices, [sample.table[:, place] for place in places if place is not None], dialect.separator)


def read_text(path: Path, dialect: Dialect, lines: int) -> Iterator[TextRows]:
    """Yield the rows of the file at `path`, from about `lines` lines at a time.

    Args:
        path: the file; packed ones are unpacked on the way.
        lines: number of lines to read at a time, about.
    """
    for block in line_blocks(path, lines):
        yield text_rows(block, dialect, path)


def text_rows(block: LineBlock, dialect: Dialect, path: Path) -> TextRows:
    """Return the rows of one block, without header and blank lines, and without a line that is cut off.

    Args:
        path: path of the file, for messages.
    """
    text, open_end = block.text, _ends_whole(block, dialect)
    if block.cut_off:
        text = text + b"\n" if open_end else text[: text.rfind(b"\n") + 1]
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == 10)
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    line = block.first + np.arange(len(ends))
    blank = _blank(text, data, begins, ends) | (line <= dialect.header)
    if blank.any():
        text = b"".join(text[b : e + 1] for b, e in zip(begins[~blank], ends[~blank], strict=True))
        line, data = line[~blank], np.frombuffer(text, np.uint8)
    width = len(dialect.columns.names)
    cells = _count_cells(data, dialect.separator)
    if b'"' in text or (cells != width).any():
        table, cells = _cell_by_cell(text.decode(), dialect, path)
    else:
        table = _plain(text, dialect)
    return TextRows(line=line, table=table, cells=cells, cut_off=block.cut_off and not open_end, open_end=open_end)


def _ends_whole(block: LineBlock, dialect: Dialect) -> bool:
    """Return whether the last line of the file has no end and is whole nevertheless, as those before it show."""
    if not block.open_end:
        return False
    lines = (block.before + block.text).decode(errors="replace").rsplit("\n", BEFORE + 1)
    return is_whole(lines[-BEFORE - 1 :], dialect.separator, len(dialect.columns.names))


def _blank(
    text: bytes, data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which lines hold nothing: no character, or a carriage return, or a spreadsheet's empty cells.

    Args:
        text: the lines; `data` is the same.
        begins: where each line begins, and `ends` where its end stands.
    """
    length = ends - begins
    bare = (length == 0) | ((length == 1) & (data[np.minimum(begins, max(0, len(data) - 1))] == 13))
    if not any(text.startswith(mark) or b"\n" + mark in text for mark in map(str.encode, f'{SEPARATORS} "')):
        return np.asarray(bare)
    empty = np.zeros(256, np.bool_)
    empty[list(EMPTY.encode())] = True
    held = np.concatenate([[0], np.cumsum(~empty[data])])
    return np.asarray(bare | (held[ends] == held[begins]))


def _count_cells(data: NDArray[np.uint8], separator: str) -> NDArray[np.int64]:
    """Return the number of cells of each line that quotes nothing."""
    marks = np.searchsorted(np.flatnonzero(data == ord(separator)), np.flatnonzero(data == 10))
    return np.asarray(np.diff(marks, prepend=0) + 1)


def _plain(text: bytes, dialect: Dialect) -> pl.DataFrame:
    """Let polars split lines that quote nothing and are all of one length."""
    schema: dict[str, Any] = {f"c{place}": pl.String for place in range(len(dialect.columns.names))}
    if not text:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(io.BytesIO(text), has_header=False, separator=dialect.separator, quote_char=None, schema=schema)


def _cell_by_cell(text: str, dialect: Dialect, path: Path) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    width = len(dialect.columns.names)
    rows = [_without_empty_end(row, width) for row in _cells(text, dialect.separator, path)]
    filled = [(row + [""] * width)[:width] for row in rows]
    names = {f"c{place}": pl.String for place in range(width)}
    return pl.DataFrame(filled, schema=names, orient="row"), np.array([len(row) for row in rows], np.int64)


def _without_empty_end(row: list[str], width: int) -> list[str]:
    """Return a row without the empty cells behind its last column: each line of some exports ends with a separator."""
    return row[:width] if len(row) > width and not any(cell.strip() for cell in row[width:]) else row


def _cells(text: str, separator: str, path: Path) -> list[list[str]]:
    """Return the cells of each line; a line break inside quotes is refused, since lines would lose their numbers."""
    lines = text.removesuffix("\n").split("\n")  # splitlines() would end lines at further characters, too
    try:
        return [
            row for line in lines for row in csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
        ]
    except csv.Error as error:
        raise TrainerError("RM510", what="the file is no CSV text", where=str(path), why=str(error)) from error
