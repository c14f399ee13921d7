"""Columns of a table on disk: written a part of the rows at a time, read a column at a time."""

from __future__ import annotations

import contextlib
import io
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from trainer.data.loading.chunks import naming

OTHERS = 256  # files that the rest of the program may have open
PREFIX = 8  # bytes that hold the length of a part


class ColumnStore:
    """A file without a name for each column, in `folder`; they are removed when the store is freed."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        """Open the files.

        Raises:
            OSError: where the system allows no more open files.
        """
        allow_files(len(names) + OTHERS)
        self._folder = folder
        self._files = {name: tempfile.TemporaryFile(dir=folder) for name in names}  # noqa: SIM115 -- as long as the store

    def add(self, part: pl.DataFrame) -> None:
        """Write the next rows; raises OSError where the disk is full."""
        with naming(self._folder):
            for name, file in self._files.items():
                packed = io.BytesIO()
                part[name].to_frame().write_ipc_stream(packed)
                file.write(packed.tell().to_bytes(PREFIX, "little"))
                file.write(packed.getbuffer())

    def column(self, name: str) -> pl.Series:
        """Return all rows of a column."""
        file, parts = self._files[name], []
        with naming(self._folder):
            file.seek(0)  # writes what is still waiting to be written
        while length := file.read(PREFIX):
            parts.append(pl.read_ipc_stream(io.BytesIO(file.read(int.from_bytes(length, "little")))))
        return pl.concat(parts)[name]


def allow_files(count: int) -> None:
    """Let this process open so many files, where the system's own limit for it allows them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
