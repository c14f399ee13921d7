"""File locks kept by the kernel: they end with the process that holds them, however it ends.

A file that only records a process outlives a kill, and the next call waits in vain.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

POLL_SECONDS = 0.2
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


class HeldError(Exception):
    """Another process holds the lock; the message names it where it is known."""


@contextmanager
def held(path: Path, *, shared: bool = False, waiting: str = "", open_to_all: bool = False) -> Iterator[None]:
    """Hold the lock on file `path`, made where it is missing, alone or with others that share it.

    With `waiting`, printed once on standard error, wait for it. A file system without locks excludes no process.
    Raises HeldError where another process holds it and it is not waited for; OSError where `path` cannot be opened.

    Args:
        path: lock file; made where it is missing.
        shared: let other holders of a shared lock in.
        waiting: message printed once while waiting; empty to raise at once.
        open_to_all: the file serves every user of the machine.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _opened(path)
    if open_to_all:
        with suppress(OSError):  # it is another user's, who has opened it
            os.fchmod(handle, 0o666)
    try:
        _take(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, waiting)
        if not shared:
            _sign(handle)
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    """Open the file, never through a link: its content is replaced."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        # another user's, or of a read-only file system: a lock on it is possible all the same, a signature is not
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _take(handle: int, kind: int, waiting: str) -> None:
    reported = False
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not waiting:
                raise HeldError(_holder(handle)) from None
        except OSError:
            return
        if not reported:
            print(f"{waiting} ({_holder(handle)}); waiting ...", file=sys.stderr, flush=True)
            reported = True
        time.sleep(POLL_SECONDS)


def _sign(handle: int) -> None:
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)


def _holder(handle: int) -> str:
    """Return the processes that have the lock's file open, else who signed it last."""
    own, status = os.getpid(), os.fstat(handle)
    found = [process for process in _processes() if process != own and _opens(process, status)]
    if found:
        return f"process {', '.join(map(str, found))}"
    signed = os.pread(handle, 20, 0).decode(errors="replace").strip()
    return f"process {signed}" if signed.isascii() and signed.isdigit() else "another process"


def _processes() -> list[int]:
    try:
        return sorted(int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    except OSError:  # no Linux, or /proc is hidden
        return []


def _opens(process: int, status: os.stat_result) -> bool:
    try:
        for each in Path(f"/proc/{process}/fd").iterdir():
            opened = each.stat()
            if (opened.st_dev, opened.st_ino) == (status.st_dev, status.st_ino):
                return True
    except OSError:  # it has ended, or is another user's
        return False
    return False
