"""SIGTERM as a request to end: schedulers and spot machines send it before they take the machine away.

A closed terminal (SIGHUP) is one, too, where it is not ignored, as nohup does.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

AGAIN = 0.05  # seconds between two looks at whether an import has ended
IMPORT = "<frozen importlib._bootstrap>"  # the file that frames of an import state
TERMINATED = 128 + signal.SIGTERM  # the status that shells give a program which ended by it


@dataclass(kw_only=True)
class Stop:
    """A request to end the run; the loop reads it between steps."""

    requested: bool = False


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[Stop]:
    """Within the block SIGTERM and SIGHUP only set the flag; outside they stay what they were."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers; whoever runs a loop elsewhere stops it himself
        return

    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.requested = True

    before = {number: signal.signal(number, request_stop) for number in ending_signals()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return SIGTERM, and SIGHUP where it is not ignored."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM,) if ignored else (signal.SIGTERM, signal.SIGHUP)


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """Interrupt as Ctrl-C does, and ignore the next such signal, which would break off what the first one cleans up.

    A scheduler may send one to every process, and the first process sends it on.
    """
    if deferred(interrupt_once, number, frame):
        return
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt as Python's own handler of Ctrl-C does, but not within an import."""
    if not deferred(interrupt, number, frame):
        raise KeyboardInterrupt


def deferred(handler: Callable[[int, FrameType | None], None], number: int, frame: FrameType | None) -> bool:
    """Call `handler` again in a moment, and return True, where modules are imported now.

    Packages drop an exception that ends an import of theirs (torch's C++ does), or take it for a package that is
    missing: the stop would be lost, or reported as another error.

    Args:
        handler: handler of the signal.
        number: the signal.
        frame: where the signal arrived.
    """
    if not importing(frame):
        return False
    signal.signal(signal.SIGALRM, lambda _, later: handler(number, later))
    signal.setitimer(signal.ITIMER_REAL, AGAIN)
    return True


def importing(frame: FrameType | None) -> bool:
    """Return whether a frame, or one that called it, is Python's import of a module."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            return True
        frame = frame.f_back
    return False


class TerminatedError(SystemExit):
    """An exit with status 143, so that what was begun is removed on the way; the command line reports it as RM598."""


@contextlib.contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM raises TerminatedError; outside it stays what it was."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # until the block is left
        raise TerminatedError(TERMINATED)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
