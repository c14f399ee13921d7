"""Tables as rows with names: CSV and TSV by their header, Parquet by polars where it is installed."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.runtime.errors import TrainerError

DELIMITED = (".csv", ".tsv")
PARQUET = ".parquet"
SLICE = 2**14  # rows of Parquet at a time
# Columns whose cells may be lists or objects, as JSON.
NESTED = ("messages", "conversations", "chosen", "rejected", "prompt", "completion")


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
        return next((names for names in csv.reader(file, delimiter=_delimiter(path)) if names), [])


def _delimiter(path: Path) -> str:
    """Return a tab for TSV; for CSV a comma, or the semicolon of a header that has no comma."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next((line for line in file if line.strip()), "")
    return ";" if ";" in header and "," not in header else ","


def _delimited(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path))
        try:
            names, begin = next((each for each in reader if each), []), reader.line_num + 1
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
            return json.loads(cell)
        except ValueError:
            return cell  # of a text that only begins so
    return cell or None


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
