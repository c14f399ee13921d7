"""A file of features: Arrow, read in slices, written a block at a time, with its metadata in a second file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.bar import Dates, Floats
from trainer.data.features.intraday import Rows
from trainer.runtime.errors import TrainerError
from trainer.storage.arrow_file import ArrowFile
from trainer.storage.output_file import whole

FIXED: dict[str, Any] = {"time": pl.Datetime("ms"), "session": pl.Int64, "close": pl.Float64}


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """Features of all in-session bars of a file.

    Shapes: date, close and session (bars,). The features stay in `file`, from bar number `first` of it on, and are
    read as they are asked for. `record` is the content of the metadata file.
    """

    file: pl.LazyFrame
    first: int
    date: Dates
    close: Floats
    session: NDArray[np.int64]
    names: tuple[str, ...]
    record: dict[str, Any]

    @property
    def features(self) -> NDArray[np.float32]:
        """All features, shape (bars, columns), NaN where the past is too short."""
        return self.rows(slice(0, len(self.date)))

    def rows(self, bars: slice) -> NDArray[np.float32]:
        """Return the features of these bars, shape (bars, columns)."""
        part = self.file.select(self.names).slice(self.first + bars.start, bars.stop - bars.start)
        return part.collect().to_numpy(order="c")

    def since(self, first: int) -> FeatureTable:
        """Return the table from bar number `first` on."""
        parts = {name: getattr(self, name)[first:] for name in ("date", "close", "session")}
        return replace(self, first=self.first + first, **parts)


def write_table(
    path: Path, rows: Generator[Rows, None, None], names: tuple[str, ...], record: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Write features to `path` and what `record` returns at the end to `path`.json; both appear whole or not at all.

    The metadata come last, and earlier ones go first: a program killed in between leaves features that are not read.

    Args:
        path: the Arrow file; the metadata's path is this with ".json".
        rows: blocks of rows, in order.
        names: names of the feature columns.
        record: called after the last block; its result is the metadata.

    Raises:
        OSError: where they cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    note = metadata_path(path)
    with whole(note) as partial_note, whole(path) as partial:
        _write(partial, rows, names)
        content = {**record(), "bytes": partial.stat().st_size}
        partial_note.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        note.unlink(missing_ok=True)
    return content


def metadata_path(path: Path) -> Path:
    """Return the path of a feature file's metadata."""
    return path.with_name(path.name + ".json")


def _write(path: Path, rows: Generator[Rows, None, None], names: tuple[str, ...]) -> None:
    """Write one block after the other, so that no more than a few are in memory."""
    file = ArrowFile(path, pl.Schema({**FIXED, **dict.fromkeys(names, pl.Float32)}))
    with contextlib.closing(rows), contextlib.closing(file):  # rows now: it may have processes that compute
        for part in rows:
            file.write(_frame(part, names))
        file.finish()


def _frame(rows: Rows, names: tuple[str, ...]) -> pl.DataFrame:
    fixed = {"time": rows.date.astype("M8[ms]"), "session": rows.session, "close": rows.close}
    features = {name: np.ascontiguousarray(rows.features[:, place]) for place, name in enumerate(names)}
    return pl.DataFrame({**fixed, **features}, schema={**FIXED, **dict.fromkeys(names, pl.Float32)})


def read_table(path: Path) -> FeatureTable:
    """Open a feature file; its features are read when they are asked for, so it has to stay until then.

    Raises:
        TrainerError: RM576 where the file or its metadata is missing or does not fit.
    """
    record = read_record(path)
    try:
        file = pl.scan_ipc(path)
        names = tuple(file.collect_schema().names()[len(FIXED) :])
        fixed = file.select(list(FIXED)).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TrainerError("RM576", what="the feature file cannot be read", where=str(path), why=str(error)) from error
    return FeatureTable(
        file=file,
        first=0,
        date=fixed["time"].to_numpy().astype("M8[s]"),
        close=fixed["close"].to_numpy(),
        session=fixed["session"].to_numpy(),
        names=names,
        record=record,
    )


def read_record(path: Path) -> dict[str, Any]:
    """Return the metadata of a feature file.

    Raises:
        TrainerError: RM576 where it is missing, or names another size than the file has.
    """
    try:
        record: dict[str, Any] = json.loads(metadata_path(path).read_text(encoding="utf-8"))
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise TrainerError("RM576", what="the feature file or its metadata is missing", where=str(path)) from error
    if record.get("bytes") != size:
        what = f"the file has {size:,} bytes, its metadata states {record.get('bytes')}"
        raise TrainerError("RM576", what=what, where=str(path))
    return record
