"""Checked reads of a run folder's files, which may come from anywhere: what is wrong has an error code."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from trainer.runtime.errors import TrainerError

MOST_BYTES = 256 * 2**20  # of a JSON file; the largest that the trainer writes is some hundred times smaller
# What reading a value of a wrong type, form or size raises. Not RuntimeError: a device's memory may have run out.
_ODD = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, UnicodeError)


def json_of(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        ValueError: where it is no regular file, larger than MOST_BYTES, or no JSON with numbers that are numbers.
        OSError: where it is not there or cannot be read.
    """
    content = regular(path, most=MOST_BYTES)
    try:
        return json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def regular(path: Path, *, most: int | None = None) -> bytes:
    """Return the bytes of a regular file; a pipe, which would be waited for, and a device are refused.

    Raises:
        ValueError: for another kind of file, or more than `most` bytes.
        OSError: where it is not there or cannot be read.
    """
    size = require_regular(path)
    if most is not None and size > most:
        raise ValueError(f"{path.name} has {size:,} bytes, and {most:,} are read at most")
    return path.read_bytes()


def require_regular(path: Path) -> int:
    """Return the size in bytes of a regular file; raises ValueError for a pipe or a device, OSError for no file."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path.name} is no regular file")
    return status.st_size


@contextmanager
def read_from(path: Path, what: str, *, code: str = "RM546") -> Iterator[None]:
    """Turn what a value of a wrong form in file `path` raises into an error with `code`; `what` names its content.

    Args:
        path: file that is read.
        what: noun for the content, for the message.
        code: code of the error that is raised.
    """
    try:
        yield
    except _ODD as error:
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise TrainerError(code, what=f"{what} cannot be used", where=str(path), why=why) from error


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number in JSON")
