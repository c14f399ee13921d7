"""A file of features: Arrow, read in slices, written a block at a time, with its metadata in a second file."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.bar import Dates, Floats
from trainer.data.features.intraday import Rows
from trainer.runtime.errors import TrainerError

FIXED: dict[str, Any] = {"time": pl.Datetime("ms"), "session": pl.Int64, "close": pl.Float64}
WAITING = 2  # frames that are computed and not yet written
LOOK = 0.2  # seconds between two looks at whether the other side failed
BATCH = 16_384  # rows of one record batch


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

    Args:
        path: the Arrow file; the metadata's path is this with ".json".
        rows: blocks of rows, in order.
        names: names of the feature columns.
        record: called after the last block; its result is the metadata.

    Raises:
        OSError: where they cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, note = path.with_name(f".{path.name}.{os.getpid()}.partial"), metadata_path(path)
    try:
        _sink(partial, rows, names)
        content = {**record(), "bytes": partial.stat().st_size}
        note.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return content


def metadata_path(path: Path) -> Path:
    """Return the path of a feature file's metadata."""
    return path.with_name(path.name + ".json")


def _sink(path: Path, rows: Generator[Rows, None, None], names: tuple[str, ...]) -> None:
    """Let polars take one frame after the other, so that no more than a few are in memory.

    polars writes in a thread of its own and features are computed in the caller's: Python delivers Ctrl-C and SIGTERM
    to the main thread only, and there only between two steps of Python.
    """
    waiting: queue.Queue[pl.DataFrame | None] = queue.Queue(maxsize=WAITING)
    writer = _Writer(path, names, waiting)
    writer.start()
    try:
        for part in rows:
            writer.put(_frame(part, names))
        writer.put(None)
    except BaseException:
        writer.broken.set()
        raise
    finally:
        rows.close()  # now, and not when the error is forgotten: it may have processes that compute
        writer.join()
    if writer.failure is not None:
        raise writer.failure


class _Writer(threading.Thread):
    """Writes the frames of a queue to a file until it meets None, or until `broken` is set."""

    def __init__(self, path: Path, names: tuple[str, ...], waiting: queue.Queue[pl.DataFrame | None]) -> None:
        super().__init__(name="feature-file", daemon=True)
        self.path, self.names, self.waiting = path, names, waiting
        self.broken = threading.Event()
        self.failure: BaseException | None = None

    def put(self, frame: pl.DataFrame | None) -> None:
        """Hand over a frame; where writing failed, raise why."""
        while True:
            if self.failure is not None:
                raise self.failure
            try:
                return self.waiting.put(frame, timeout=LOOK)
            except queue.Full:
                continue

    def run(self) -> None:
        """Write until the end."""
        from polars.io.plugins import register_io_source

        schema = {**FIXED, **dict.fromkeys(self.names, pl.Float32)}
        try:
            lazy = register_io_source(self._frames, schema=schema)
            lazy.sink_ipc(self.path, compression="uncompressed", record_batch_size=BATCH, maintain_order=True)
        except BaseException as error:  # polars raises KeyboardInterrupt here, in a thread of ours
            self.failure = error

    def _frames(self, columns: list[str] | None, *_: Any) -> Iterator[pl.DataFrame]:
        while not self.broken.is_set():
            try:
                frame = self.waiting.get(timeout=LOOK)
            except queue.Empty:
                continue
            if frame is None:
                return
            yield frame.select(columns) if columns is not None else frame


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
