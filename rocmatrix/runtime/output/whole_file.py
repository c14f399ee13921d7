"""A file written whole or not at all, under a temporary name of its own until then."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or, after a failure, as it was before.

    A link at that path is replaced and not followed. Raises OSError: EISDIR for a folder and for a path without a name,
    EEXIST where a pipe or a device is, which a rename would remove.
    """
    require_place(path)
    part = path.with_name(f".rocmatrix-{os.getpid()}.part")  # short: the file's own name may be as long as can be
    part.unlink(missing_ok=True)
    try:
        with part.open("xb") as stream:  # exclusive: a link that stands there is an error
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def require_place(path: Path) -> None:
    """Raise OSError where no file can be put: EISDIR for a folder or no name, EEXIST for a pipe or a device."""
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is no regular file", str(path))
