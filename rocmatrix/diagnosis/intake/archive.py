"""The logs of a zip archive, as a CI service hands them out, unpacked into a folder."""

from __future__ import annotations

import calendar
import os
import zipfile
from pathlib import Path
from typing import IO

from rocmatrix.diagnosis.intake.folder import MOST_LOGS, is_log_name
from rocmatrix.runtime.errors import RocmatrixError

MAGIC = b"PK\x03\x04"
MOST_BYTES = 4 << 30  # of all logs of an archive: a few bytes may be packed that unfold to a full disk
_BREAKS = (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError, ValueError)


def is_zip(path: Path) -> bool:
    """Return whether a file begins as a zip archive does; one that cannot be read, or is no file, does not."""
    try:
        if not path.is_file():  # a pipe gives its first bytes once
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def unpack(archive: Path | IO[bytes], folder: Path, *, name: str) -> None:
    """Write the logs of an archive below a folder, each with its time.

    Raises:
        RocmatrixError: RM610 where it holds no log, more than 5000, or more than 4 GiB; RM611 where it cannot be read.

    Args:
        archive: path of the archive, or the open file, which has to be seekable.
        folder: an empty folder.
        name: the archive's name in messages.
    """
    try:
        with zipfile.ZipFile(archive) as held:
            members = [one for one in held.infolist() if one.file_size and is_log_name(Path(one.filename).name)]
            total = sum(one.file_size for one in members)
            if not members or len(members) > MOST_LOGS or total > MOST_BYTES:
                what = f"it holds {len(members)} logs of {total} bytes" if members else "no log is in it"
                raise RocmatrixError("RM610", what=what, where=name, next="Unpack it, and name one log of it.")
            for one in members:
                path = held.extract(one, folder)  # which keeps it below the folder
                if one.date_time[1]:  # a writer that knows no time leaves zeros
                    written = calendar.timegm((*one.date_time, 0, 0, 0))
                    os.utime(path, (written, written))
    except _BREAKS as error:  # a password, a method of packing that is not known, a cut archive
        raise RocmatrixError("RM611", what=f"not sound zip: {error}", where=name) from error
