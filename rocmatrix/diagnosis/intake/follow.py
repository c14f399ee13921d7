"""A log that still grows: what is new in it, also after it was rotated, cut or replaced."""

from __future__ import annotations

import codecs
import io
import os
from pathlib import Path

from rocmatrix.diagnosis import log_reader
from rocmatrix.diagnosis.intake.folder import is_folder
from rocmatrix.runtime.errors import RocmatrixError

REMEMBERED = 256  # bytes before the place that was read to: other ones there mean another text
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")


class Follower:
    """Read what is new in a file since the last look, in whole lines.

    `restarts` counts how often it began anew: by another file under the name (rotated), or by a text that was cut or
    written over (copytruncate). `partial` is the last line as far as it is written.

    Args:
        path: the log. Raises RM610 where it cannot be opened, RM684 where it is packed or a folder.
    """

    def __init__(self, path: Path) -> None:
        if is_folder(path):
            raise RocmatrixError("RM684", what="it is a folder", where=str(path))
        self.path, self.restarts = path, 0
        self.partial, self._tail = b"", b""
        self._file = _opened(path)
        self._begin()
        if self._head.startswith(_PACKED):
            raise RocmatrixError("RM684", what="it is packed", where=str(path))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self) -> bytes:
        """Return the new whole lines, at most about 4 MiB; empty where there are none."""
        if self._is_cut():
            self._file.seek(0)
            self._restart()
        data = self._file.read(log_reader.CHUNK)
        if not data and self._is_replaced():
            self._file.close()
            self._file = _opened(self.path)
            self._restart()
            data = self._file.read(log_reader.CHUNK)
        self._tail = (self._tail + data)[-REMEMBERED:]
        return self._lines(data)

    def _begin(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None
        self._head = self._file.read(4)
        self._file.seek(0)
        self._tail, self.partial = b"", b""
        wide = self._head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace") if wide else None

    def _restart(self) -> None:
        self.restarts += 1
        self._begin()

    def _lines(self, data: bytes) -> bytes:
        if self._decoder is not None:
            data = self._decoder.decode(data).encode(errors="replace")
        data = self.partial + data
        cut = data.rfind(b"\n") + 1 or (len(data) if len(data) > log_reader.LONGEST_LINE else 0)
        self.partial = data[cut:]
        return data[:cut]

    def _is_cut(self) -> bool:
        """Whether the file is shorter than what was read of it, or other bytes stand where reading stopped."""
        place = self._file.tell()
        if os.fstat(self._file.fileno()).st_size < place:
            return True
        self._file.seek(place - len(self._tail))
        return self._file.read(len(self._tail)) != self._tail

    def _is_replaced(self) -> bool:
        """Whether the name stands for another file now; while there is none, the old one is kept."""
        try:
            there = self.path.stat()
        except OSError:
            return False
        mine = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)


def _opened(path: Path) -> io.FileIO:
    """Open without a buffer: what a buffer holds is not what stands in the file now."""
    log_reader.opened(path).close()
    return io.FileIO(path)
