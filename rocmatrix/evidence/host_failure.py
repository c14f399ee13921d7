"""Failures of the host rather than the cell: recognised by kind and code, never by text in a log."""

from __future__ import annotations

import errno

from rocmatrix.containers import engine
from rocmatrix.evidence.record import Trouble
from rocmatrix.images.build import BuildFailedError
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.trouble import Stage

# What stands in the way before, beside or below an image: no engine, no registry or index, no room.
CODES: dict[str, Stage] = {
    "RM201": "engine",
    "RM221": "engine",
    "RM650": "engine",
    "RM651": "engine",
    "RM104": "registry",
    "RM204": "registry",
    "RM205": "disk",
    "RM206": "disk",
}
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
TEXT_LIMIT = 4000


def of(error: BaseException) -> Trouble | None:
    """Return the host's trouble that an error stands for, None where the error is the cell's or this program's."""
    stage = _stage(error)
    return Trouble(stage=stage, words=str(error)[:TEXT_LIMIT]) if stage else None


def _stage(error: BaseException) -> Stage | None:
    if isinstance(error, KeyboardInterrupt):
        return "signal"
    if isinstance(error, BuildFailedError) and error.trouble:  # BuildKit's, of a build anew
        return error.trouble.stage
    if isinstance(error, RocmatrixError):
        return CODES.get(error.code)
    if isinstance(error, OSError) and error.errno in DISK:
        return "disk"
    return "engine" if isinstance(error, engine.failures()) and not _local(error) else None


def _local(error: BaseException) -> bool:
    """Return whether an error of the operating system is one of files: connections have kinds of their own."""
    import requests

    return isinstance(error, OSError) and not isinstance(
        error, (requests.RequestException, ConnectionError, TimeoutError)
    )
