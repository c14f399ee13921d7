"""Tables as rows with names: CSV and TSV by their header, Parquet by polars where it is installed."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.runtime.errors import TrainerError

DELIMITED = (".csv", ".tsv")
PARQUET = ".parquet"
SLICE = 2**14  # rows of Parquet at a time
# Columns whose cells may be messages, as JSON.
NESTED = ("messages", "conversations", "chosen", "rejected", "prompt", "completion")
COLUMNS = {*NESTED, "instruction", "input", "output", "text", "system", "label"}  # by which a header is known
DELIMITERS = (",", ";", "\t", "|")
SEPARATOR = re.compile("sep=(.)\r?\n?$", re.IGNORECASE)  # the first line that Excel writes and reads


def is_delimited(path: Path) -> bool:
    """Return whether a file's name states CSV or TSV, in any letter case."""
    return path.suffix.lower() in DELIMITED


def reads_parquet(path: Path) -> bool:
    """Return whether a file's name states Parquet, and polars is here to read it."""
    return path.suffix.lower() == PARQUET and importlib.util.find_spec("polars") is not None


def rows_of(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield where each row is and its cells by column, empty ones as null; in place of a row what is wrong with it.

    Raises:
        TrainerError: RM717 for a file that cannot be read as a table.
        UnicodeDecodeError: for CSV that is not UTF-8.
        OSError: where it cannot be opened.
    """
    return _delimited(path) if is_delimited(path) else _parquet(path)


def columns(path: Path) -> list[str]:
    """Return the names in the header of CSV or TSV, none where it has no line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return _header(csv.reader(file, delimiter=_delimiter(path)))


def _header(reader: Iterator[list[str]]) -> list[str]:
    """Return the names of the first line that is not empty, nor Excel's statement of what separates cells."""
    return next((names for names in reader if any(names) and not _is_statement(names)), [])


def _is_statement(names: list[str]) -> bool:
    return names[0].lower() == "sep=" and not any(names[1:])


def _require_names_once(names: list[str], path: Path) -> None:
    """Raise RM717 for a column that is there twice: readers differ in which counts."""
    bare = [name.strip() for name in names]
    if twice := next((name for name in bare if name and bare.count(name) > 1), None):
        next_ = "Name them differently, or delete one."
        raise TrainerError("RM717", what=f"{path.name} has the column {twice!r} twice", where=str(path), next=next_)


def _delimiter(path: Path) -> str:
    """Return a tab for TSV; for CSV that of the header with most known names, or the first that it has."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next((line for line in file if line.strip()), "")
    if stated := SEPARATOR.match(header):
        return stated[1]
    known = {each: sum(name.strip(' "\r\n') in COLUMNS for name in header.split(each)) for each in DELIMITERS}
    return max(DELIMITERS, key=lambda each: (known[each], each in header))


def _delimited(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path))
        try:
            names, begin = _header(reader), reader.line_num + 1
            _require_names_once(names, path)
            for cells in reader:
                if cells:
                    yield f"{path}:{begin}", _row(names, cells)
                begin = reader.line_num + 1  # a cell may hold several lines
        except csv.Error as error:
            raise TrainerError("RM717", what=f"{path.name} is no table: {error}", where=str(path)) from None


def _row(names: list[str], cells: list[str]) -> dict[str, Any] | str:
    if len(cells) > len(names):
        return f"the line has {len(cells)} cells, and the header {len(names)}: a text with a delimiter stands in quotes"
    pairs = itertools.zip_longest(names, cells)
    return {name.strip(): _cell(name.strip(), cell) for name, cell in pairs}


def _cell(name: str, cell: str | None) -> Any:
    if name in NESTED and cell and cell.lstrip().startswith(("[{", "{")):
        try:
            read = json.loads(cell)
        except (ValueError, RecursionError):
            return cell  # of a text that only begins so
        return read if _is_talk(read) else cell  # an answer may be JSON, too
    return cell or None


def _is_talk(read: Any) -> bool:
    """Return whether a cell's JSON is a message or a list of them."""
    listed = read if isinstance(read, list) else [read]
    return all(isinstance(each, dict) and ("role" in each or "from" in each) for each in listed)


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    import polars as pl

    try:
        frame = pl.scan_parquet(path, glob=False)
        total = frame.select(pl.len()).collect().item()
        for begin in range(0, total, SLICE):
            rows: list[dict[str, Any]] = frame.slice(begin, SLICE).collect().to_dicts()
            for number, row in enumerate(rows, begin + 1):
                yield f"{path}: row {number}", row
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"{path.name} cannot be read as Parquet: {' '.join(str(error).split())}"[:300]
        next = "A whole Parquet file ends with the bytes PAR1: fetch it again."
        raise TrainerError("RM717", what=what, where=str(path), next=next) from None
