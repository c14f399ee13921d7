"""A job's whole log in one file: what it wrote to standard error and every line it sent, in the order of arrival.

A log that cannot be written stops no job: it ends where the disk was full, and the job's last words are still kept.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

KEPT = 20  # logs of each program: the newest


def place(folder: Path, program: str, cell: str) -> Path:
    """Return a name for a new log: program, cell, second and process.

    Args:
        folder: folder of all logs.
        program: name of the program that runs.
        cell: the cell\'s whole name, such as rocm7.2-torch2.12.1-gfx1100.
    """
    return folder / f"{program}-{cell}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.log"


@dataclass(kw_only=True)
class JobLog:
    """A log that is being written; `descriptor` is None where it could not be opened, or is no more written.

    `complete` states whether it holds all output.
    """

    descriptor: int | None
    complete: bool = field(init=False)
    whole_lines: bool = True  # whether the last line that was written is a whole one
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.complete = self.descriptor is not None

    def write(self, block: bytes) -> None:
        """Append what came from standard error."""
        with self.lock:
            self._append(block)

    def line(self, text: str) -> None:
        """Append a line from standard output: on a line of its own, for a progress line may be half-written."""
        with self.lock:
            self._append(b"" if self.whole_lines else b"\n")
            self._append(text.encode(errors="replace"))

    def _append(self, block: bytes) -> None:
        try:
            while block and self.descriptor is not None:
                self.whole_lines = block.endswith(b"\n")
                block = block[os.write(self.descriptor, block) :]
        except OSError:
            self.complete = False
            self.close()

    def close(self) -> None:
        """Write no more."""
        if self.descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = None


@contextmanager
def opened(path: Path | None) -> Iterator[JobLog]:
    """Open a log for one job, and remove the oldest of its program; without a path nothing is written."""
    log = JobLog(descriptor=_descriptor(path) if path else None)
    try:
        yield log
    finally:
        with log.lock:
            log.close()


def _descriptor(path: Path) -> int | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError:
        return None
    _remove_old(path.parent, path.name.split("-", 1)[0])
    return made


def _remove_old(folder: Path, program: str) -> None:
    with contextlib.suppress(OSError):
        logs = sorted(folder.glob(f"{program}-*.log"), key=lambda log: log.stat().st_mtime)
        for log in logs[:-KEPT]:
            log.unlink(missing_ok=True)
