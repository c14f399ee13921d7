"""Paths as a person types them: a home folder by its user's name, and files that may be pipes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from rocmatrix.runtime.errors import RocmatrixError


def expanded(named: str) -> Path:
    """Return a path with the home folder in place of `~` or `~user`. Raises RM404 where there is no such user.

    A shell leaves `~user` as it is where there is no such user, and after the `=` of a flag.
    """
    try:
        return Path(named).expanduser()
    except RuntimeError as error:
        next_step = "Write the folder out, or ./~… for one whose own name begins with ~."
        raise RocmatrixError("RM404", what="~ names no user with a home folder", where=named, next=next_step) from error


def opened(path: Path) -> BinaryIO:
    """Open a file to read its bytes; a named pipe without a writer counts as empty, where `open` would wait for one.

    Raises OSError, as `open` does.
    """
    stream = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 -- Path.open takes no opener
    os.set_blocking(stream.fileno(), True)  # a pipe with a writer is read to its end
    return stream


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
