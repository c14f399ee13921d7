"""Parquet and Arrow files: typed columns, read lazily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from trainer.data.readers.column_names import Columns, find_columns
from trainer.runtime.errors import TrainerError

PARQUET, ARROW = b"PAR1", b"ARROW1"
SAMPLE = 1000  # rows


def is_columnar(path: Path) -> bool:
    """Return whether the file's first bytes are those of Parquet or Arrow; the name does not decide."""
    return _magic(path) in (PARQUET, ARROW)


def _magic(path: Path) -> bytes:
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            head = file.read(6)
    except OSError:
        return b""  # what cannot be opened is refused, with its reason, where text is read
    return next((magic for magic in (PARQUET, ARROW) if head.startswith(magic)), b"")


def open_columnar(path: Path, chosen: Mapping[str, str] | None = None) -> tuple[Columns, pl.DataFrame]:
    """Return the columns and the first rows.

    Raises:
        TrainerError: RM516 where the file is damaged, RM512 where a column is missing or holds lists or bytes.
    """
    try:
        frame = _scan(path)
        schema = frame.collect_schema()
        sample = frame.head(SAMPLE).collect()
        columns = find_columns(schema.names(), str(path), chosen, sample)
        _require_flat(columns, schema, path)
        return columns, sample
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error


def _require_flat(columns: Columns, schema: pl.Schema, path: Path) -> None:
    """Raise RM512 for columns of lists, records or bytes, and for spans of time as prices."""
    for role, place in columns.place.items():
        name, kind = columns.names[place], schema[columns.names[place]]
        if kind.is_nested() or kind in (pl.Binary, pl.Object) or (role != "date" and kind.is_temporal()):
            what = f"column {name!r}, taken as {role}, is of the type {kind}"
            advice = f"Name a column of {'times' if role == 'date' else 'numbers'}: --columns {role}=NAME."
            raise TrainerError("RM512", what=what, where=str(path), next=advice)


def read_columnar(path: Path, rows: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the number of the first row, from 1, and up to `rows` rows."""
    first = 1
    try:
        for table in _scan(path).collect_batches(chunk_size=rows, maintain_order=True):
            yield first, table
            first += len(table)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error


def _scan(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path) if _magic(path) == PARQUET else pl.scan_ipc(path)


def _damaged(path: Path, error: Exception) -> TrainerError:
    what = "the file is damaged or cut off: its table of contents, at its end, cannot be read"
    return TrainerError("RM516", what=what, where=str(path), why=str(error).splitlines()[0][:200])
