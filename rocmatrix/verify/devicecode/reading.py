"""Read at an offset of a file, within bounds: a damaged file is distinguished from a short one, and costs no memory."""

from __future__ import annotations

from typing import BinaryIO

MAX_READ = 64 * 1024 * 1024  # bytes; tables are far smaller, and code itself is never read whole


class DamagedError(Exception):
    """A file of a known format that cannot be read; the reason is readable."""


def read_at(file: BinaryIO, offset: int, size: int, what: str) -> bytes:
    """Return exactly `size` bytes at `offset`. Raises `DamagedError`, naming `what` was looked for.

    Args:
        file: seekable file.
        offset: bytes from the file's start.
        size: number of bytes.
        what: name of what is read, for the message.
    """
    if not 0 <= size <= MAX_READ or not 0 <= offset < 2**63:
        raise DamagedError(f"{what} of {size} bytes at {offset}")
    file.seek(offset)
    data = file.read(size)
    if len(data) != size:
        raise DamagedError(f"the file ends within {what} at {offset}")
    return data
