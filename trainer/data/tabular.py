"""Any table with a header: CSV (plain, .gz, .zst), Parquet or Arrow, cell by cell, with the line of each row."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.columnar import PARQUET, is_columnar
from trainer.data.stream import kind_of, line_blocks
from trainer.errors import TrainerError

SEPARATORS = ",;\t|"


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A table as it stands: text from CSV, typed columns from Parquet and Arrow.

    line: (rows,) of each row in its file, from 1; a `unit` is a line of text, or a row of a typed file.
    read: how the file was understood, in JSON's types.
    """

    table: pl.DataFrame
    line: NDArray[np.int64]
    unit: str
    path: Path
    read: dict[str, Any]

    def place(self, row: int) -> str:
        """Return file and line of a row, for a message."""
        return f"{self.path}, {self.unit} {self.line[row]}"


def read_cells(path: Path, chunk: int = 50_000) -> Cells:
    """Read the whole table at `path`.

    Raises:
        TrainerError: RM510 for what is no table, RM511 for one without rows, RM516 for a damaged file, RM580 for
            a line with another number of cells or a header that names a column twice.
    """
    cells = _typed(path) if is_columnar(path) else _text(path, chunk)
    if not len(cells.table):
        raise TrainerError("RM511", what="the file holds no row", where=str(path))
    return cells


def _typed(path: Path) -> Cells:
    try:
        with path.open("rb") as file:
            parquet = file.read(4) == PARQUET
        table = pl.read_parquet(path) if parquet else pl.read_ipc(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        why = str(error).splitlines()[0][:200]
        raise TrainerError("RM516", what="the file is damaged or cut off", where=str(path), why=why) from error
    kind = "Parquet" if parquet else "Arrow"
    lines = np.arange(1, len(table) + 1)
    return Cells(table=table, line=lines, unit="row", path=path, read={"format": kind})


def _text(path: Path, chunk: int) -> Cells:
    lines = _lines(path)
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise TrainerError("RM511", what="the file holds no row", where=str(path))
    separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(itertools.chain([first], lines), delimiter=separator, strict=True)
    try:
        names = _header(next(reader), path)
        parts = list(_parts(reader, names, chunk, path))
    except csv.Error as error:
        where = f"{path}, line {reader.line_num}"
        raise TrainerError("RM510", what="the file is no CSV text", where=where, why=str(error)) from error
    schema = dict.fromkeys(names, pl.String)
    table = pl.concat([part for part, _ in parts]) if parts else pl.DataFrame(schema=schema)
    line = np.concatenate([numbers for _, numbers in parts]) if parts else np.empty(0, np.int64)
    return Cells(table=table, line=line, unit="line", path=path, read={"format": "CSV", "separator": separator})


def _header(names: list[str], path: Path) -> list[str]:
    names = [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise TrainerError("RM580", what=f"two columns are called {twice[0]!r}", where=f"{path}, line 1")
    return names


def _parts(reader: Any, names: list[str], chunk: int, path: Path) -> Iterator[tuple[pl.DataFrame, NDArray[np.int64]]]:
    schema = dict.fromkeys(names, pl.String)
    while rows := list(itertools.islice(_numbered(reader, len(names), path), chunk)):
        lines, cells = zip(*rows, strict=True)
        columns = zip(*cells, strict=True)
        yield pl.DataFrame(dict(zip(names, columns, strict=True)), schema=schema), np.array(lines, np.int64)


def _numbered(reader: Any, width: int, path: Path) -> Iterator[tuple[int, list[str]]]:
    for row in reader:
        if len(row) == width:
            yield reader.line_num, row
        elif row and row != [""]:
            what = f"{len(row)} cells where the header has {width}"
            raise TrainerError("RM580", what=what, where=f"{path}, line {reader.line_num}")


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of the file; packed data that breaks off is an error, a last line without an end is none."""
    packed, _ = kind_of(path)
    for block in line_blocks(path, 50_000):
        if block.cut_off and packed != "none":
            raise TrainerError("RM516", what="the compressed data breaks off, or has no last line end", where=str(path))
        text = block.text.decode()
        yield from (line + "\n" for line in text.removesuffix("\n").split("\n"))
