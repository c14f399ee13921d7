"""SIGTERM as a request to end: schedulers and spot machines send it before they take the machine away."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType


@dataclass(kw_only=True)
class Stop:
    """A request to end the run; the loop reads it between steps."""

    requested: bool = False


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[Stop]:
    """Within the block SIGTERM only sets the flag; outside it stays what it was."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers; whoever runs a loop elsewhere stops it himself
        return

    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.requested = True

    before = signal.signal(signal.SIGTERM, request_stop)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM unwinds the program as an exit with status 143, so that what it began is removed.

    Where SIGTERM already interrupts as Ctrl-C does, as in the trainer's own process, it stays so: that end has words.
    """
    own = signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    if own or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
