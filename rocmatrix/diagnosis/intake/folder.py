"""The logs below a folder, oldest first. Source files and documents quote errors, so they count as no logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.diagnosis import log_reader
from rocmatrix.runtime.errors import RocmatrixError

MOST_LOGS = 5000
SNIFFED = 4096
_PACKINGS = {".gz", ".bz2", ".xz", ".zst"}
_ENDINGS = {"", ".log", ".out", ".err", ".txt", ".json", ".jsonl", ".ndjson", ".dmesg", ".stdout", ".stderr", ".output"}
# output (.o) or errors (.e) of a job of PBS or SGE after the script's name, with the numbers of job and array's task
_OF_A_JOB = re.compile(r"\.p?[oe]\d{1,14}(?:[.-]\d{1,9})?$")
_ROTATED = re.compile(r"(?:[.-]\d{1,14}|\.old|\.prev|\.bak)$", re.IGNORECASE)
_NO_LOGS = re.compile(
    r"(?i)^(?:dockerfile|containerfile|makefile|license|licence|copying|notice|readme|authors|changelog|cmakelists\.txt|"
    r"requirements[\w.-]*\.txt|constraints[\w.-]*\.txt|.*config\.json|tokenizer.*|vocab.*|merges\.txt|package(?:-lock)?\.json)$"
)
_FOLDERS_LEFT_OUT = {".git", "__pycache__", "node_modules", ".venv", "site-packages"}


@dataclass(frozen=True, kw_only=True)
class Logs:
    """What is to be read of a folder, oldest first, and what could not be read, with the reason."""

    folder: Path
    paths: tuple[Path, ...]
    left_out: tuple[str, ...]

    def name(self, path: Path) -> str:
        """Return a log's path as seen from the folder."""
        return path.relative_to(self.folder).as_posix()


def logs(folder: Path) -> Logs:
    """Return the logs below a folder. Raises RM610 where there is none, or more than 5000."""
    paths: dict[tuple[int, int], tuple[int, Path]] = {}
    left_out: list[str] = []
    for path in _files(folder, left_out):
        try:
            state = path.stat()
            if state.st_size and _is_text(path):
                paths.setdefault((state.st_dev, state.st_ino), (state.st_mtime_ns, path))
        except OSError as error:
            left_out.append(f"{path}: {error.strerror}")
    if not paths or len(paths) > MOST_LOGS:
        what = f"it holds {len(paths)} logs, and {MOST_LOGS} are read at most" if paths else "no log is in the folder"
        advice = "Name one log, or a folder with *.log, *.out, *.err or *.txt files, packed or not."
        raise RocmatrixError("RM610", what=what, where=str(folder), why="; ".join(left_out[:3]), next=advice)
    ordered = tuple(path for _, path in sorted(paths.values()))
    return Logs(folder=folder, paths=ordered, left_out=tuple(left_out))


def _files(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """Yield what has the name of a log; links to folders are not followed, so no loop is."""

    def failed(error: OSError) -> None:
        left_out.append(f"{error.filename}: {error.strerror}")

    for root, folders, names in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if name not in _FOLDERS_LEFT_OUT)
        yield from (Path(root, name) for name in sorted(names) if is_log_name(name) and Path(root, name).is_file())


def is_folder(path: Path) -> bool:
    """Return whether a path leads to a folder. A name that is too long, or holds a NUL, leads to none."""
    return os.path.isdir(path)  # noqa: PTH112 -- Path.is_dir raises for such a name


def is_log_name(name: str) -> bool:
    """Return whether a file's name is that of a log: an ending of one, rotated or packed, or none.

    Args:
        name: name without folders, such as train.log.2.gz.
    """
    if _NO_LOGS.match(name):
        return False
    plain = Path(name).stem if Path(name).suffix.lower() in _PACKINGS else name
    if _OF_A_JOB.search(plain):
        return True
    while (shorter := _ROTATED.sub("", plain)) != plain:
        plain = shorter
    return Path(plain).suffix.lower() in _ENDINGS


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(SNIFFED)
    return head.startswith((*log_reader.PACKED, *log_reader.UTF16)) or b"\0" not in head
