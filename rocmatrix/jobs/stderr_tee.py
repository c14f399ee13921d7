"""Standard error of a program that is started: passed on as it comes, its end kept for a diagnosis.

Where this program writes to a terminal, so does the one it starts: progress in one line stays progress in one line.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

KEPT_BYTES = 256 << 10
BLOCK = 1 << 16
# A grandchild may hold the end open for longer than the program lives; its words are not waited for.
PATIENCE_SECONDS = 2.0


@dataclass(kw_only=True)
class Tee:
    """`writable` is the file descriptor for the program; `tail` the last bytes that came, complete after the end."""

    writable: int
    tail: bytes = b""


@contextmanager
def tee_stderr(onto: TextIO, also: Callable[[bytes], None] = lambda _: None) -> Iterator[Tee]:
    """Pass on what is written to the tee's descriptor, keep its end, and hand every block to `also`."""
    readable, writable = _ends(onto)
    tee = Tee(writable=writable)
    copying = threading.Thread(target=_copy, args=(readable, _descriptor(onto), tee, also), daemon=True)
    copying.start()
    try:
        yield tee
    finally:
        os.close(writable)
        copying.join(PATIENCE_SECONDS)
        if b"\r" in tee.tail.rpartition(b"\n")[2]:  # a killed program leaves its progress line unfinished
            with contextlib.suppress(OSError):
                os.write(_descriptor(onto), b"\n")


def _ends(onto: TextIO) -> tuple[int, int]:
    if not onto.isatty():
        return os.pipe()
    readable, writable = pty.openpty()
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(onto.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(writable, termios.TIOCSWINSZ, size)
    return readable, writable


def _descriptor(onto: TextIO) -> int:
    """Return where a program without a tee would write: replaced streams, as in tests, have no descriptor."""
    try:
        return onto.fileno()
    except (OSError, ValueError):
        return 2


def _copy(readable: int, onto: int, tee: Tee, also: Callable[[bytes], None]) -> None:
    # A terminal's end raises EIO, and a terminal that is gone must not stop the program that writes.
    with contextlib.suppress(OSError):
        while block := os.read(readable, BLOCK):
            tee.tail = (tee.tail + block)[-KEPT_BYTES:]
            also(block)
            with contextlib.suppress(OSError):
                os.write(onto, block)
    os.close(readable)
