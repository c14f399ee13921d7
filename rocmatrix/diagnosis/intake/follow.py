"""A log that still grows: what is new in it, also after it was rotated, cut or replaced."""

from __future__ import annotations

import codecs
import io
import os
import stat
from pathlib import Path

from rocmatrix.diagnosis import log_reader
from rocmatrix.diagnosis.intake.folder import is_folder
from rocmatrix.runtime.errors import RocmatrixError

REMEMBERED = 256  # bytes before the place that was read to: other ones there mean another text
_MARKS = (*log_reader.PACKED, *log_reader.UTF16)  # a text that begins so is not plain


class Follower:
    """Read what is new in a file since the last look, in whole lines.

    `restarts` counts how often it began anew: by another file under the name (rotated), or by a text that was cut or
    written over (copytruncate). `partial` is the last line as far as it is written.

    Args:
        path: the log. Raises RM610 where it cannot be opened, RM684 where it is packed, a folder or a pipe.
    """

    def __init__(self, path: Path) -> None:
        if is_folder(path):
            raise RocmatrixError("RM684", what="it is a folder", where=str(path))
        self.path, self.restarts = path, 0
        self.partial, self._tail = b"", b""
        self._file = _opened(path)
        self._begin()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self) -> bytes:
        """Return the new whole lines, at most about 4 MiB; empty where there are none.

        A last line without its end comes before the text that took the file's place. Raises RM684 where that is packed.
        """
        if self._is_cut():
            if self.partial:
                return self._pending()
            self._restart()
        data = self._new()
        if not data and self._is_replaced():
            if self.partial:
                return self._pending()
            self._file.close()
            self._file = _opened(self.path)
            self._restart()
            data = self._new()
        self._tail = (self._tail + data)[-REMEMBERED:]
        return self._lines(data)

    def _pending(self) -> bytes:
        half, self.partial = self.partial, b""
        return half

    def _new(self) -> bytes:
        """Return the bytes that were not read yet; none while those that are there do not yet show the encoding."""
        if self._is_undecided():
            self._begin()
        return b"" if self._is_undecided() else self._file.read(log_reader.CHUNK)

    def _is_undecided(self) -> bool:
        return any(mark.startswith(self._head) and mark != self._head for mark in _MARKS)

    def _begin(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None
        self._file.seek(0)
        self._head = self._file.read(max(map(len, _MARKS)))
        self._file.seek(0)
        if self._head.startswith(tuple(log_reader.PACKED)):
            raise RocmatrixError("RM684", what="it is packed", where=str(self.path))
        self._tail, self.partial = b"", b""
        wide = self._head.startswith(log_reader.UTF16)
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace") if wide else None

    def _restart(self) -> None:
        self.restarts += 1
        self._begin()

    def _lines(self, data: bytes) -> bytes:
        if self._decoder is not None:
            data = self._decoder.decode(data).encode(errors="replace")
        data = self.partial + data
        cut = log_reader.whole(data)
        self.partial = data[cut:]
        return data[:cut]

    def _is_cut(self) -> bool:
        """Return whether the file is shorter than what was read of it, or other bytes stand where reading stopped."""
        place = self._file.tell()
        if os.fstat(self._file.fileno()).st_size < place:
            return True
        self._file.seek(place - len(self._tail))
        return self._file.read(len(self._tail)) != self._tail

    def _is_replaced(self) -> bool:
        """Return whether the name stands for another plain file now; while there is none, the old one is kept."""
        try:
            there = self.path.stat()
        except OSError:
            return False
        mine = os.fstat(self._file.fileno())
        return stat.S_ISREG(there.st_mode) and (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)


def _opened(path: Path) -> io.FileIO:
    """Open without a buffer: what a buffer holds is not what stands in the file now."""
    with log_reader.opened(path) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise RocmatrixError("RM684", what="it is no plain file", where=str(path))
        return io.FileIO(os.dup(stream.fileno()), "rb")
