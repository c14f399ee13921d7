"""Rows a piece at a time, and in a file that is mapped: what is used of it is in memory, and may leave it again.

Sums over rows go by the same pieces wherever the rows lie, so that they come out the same to the bit.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 65_536  # rows: 14 MB where a row has 54 numbers


def chunks(rows: int) -> Iterator[slice]:
    """Yield slices that cover `rows` rows in their order; an empty one where there are none."""
    return (slice(first, min(first + PIECE, rows)) for first in range(0, max(rows, 1), PIECE))


def mapped(parts: Iterable[NDArray[Any]], folder: Path | None = None) -> NDArray[Any]:
    """Return `parts`, of one dtype and one shape but for their rows, as one array mapped from a file in `folder`.

    The file has no name, and is removed when the array is freed.

    Raises:
        OSError: where the file cannot be written; it names the folder.
    """
    rows = 0
    with naming(folder), tempfile.TemporaryFile(dir=folder) as file:
        for part in parts:
            file.write(np.ascontiguousarray(part).data)
            rows, last = rows + len(part), part
        file.flush()
        # shared, as private memory that could be written to would count as the program's own; nobody writes
        return np.memmap(file, dtype=last.dtype, mode="r+", shape=(rows, *last.shape[1:])) if rows else last


@contextlib.contextmanager
def naming(folder: Path | None) -> Iterator[None]:
    """Add the folder to an error from a file without a name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(folder or tempfile.gettempdir())
        raise
