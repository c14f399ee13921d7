"""SIGTERM as a request to end: schedulers and spot machines send it before they take the machine away.

A closed terminal (SIGHUP) is one, too, where it is not ignored, as nohup does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

AGAIN = 0.05  # seconds between two looks at whether an import has ended
LONGEST = 1.0  # seconds that the end of an import is waited for: one that hangs would never end
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


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C, SIGTERM and SIGHUP back until the block is left.

    A process that is started in the block begins with them blocked, and unblocks them once it has its own answers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, *ending_signals())
    before = {number: signal.signal(number, lambda each, _: came.append(each)) for number in numbers}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # another thread may still receive them
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return SIGTERM, and SIGHUP where it is not ignored."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM,) if ignored else (signal.SIGTERM, signal.SIGHUP)


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """Interrupt as Ctrl-C does, and ignore the next such signal, which would break off what the first one cleans up.

    A scheduler may send one to every process, and the first process sends it on.
    """
    if _deferred.by(number, frame, _stop_once):
        return
    _stop_once(number)


def _stop_once(number: int) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt as Python's own handler of Ctrl-C does, but not within an import, and once for a signal.

    For a signal that comes while polars computes polars raises a KeyboardInterrupt itself, and Python calls this for
    the same signal while that one unwinds: a second one would break off what is cleaned up. What is raised while a
    generator is closed Python drops, and prints it with a traceback, so there it waits for a moment.
    """
    again, _Seen.signal = _Seen.signal, True
    if _deferred.by(number, frame, _stop) or (not again and handled(KeyboardInterrupt)):
        return
    if again or not handled(GeneratorExit):
        _stop(number)
    begin = time.monotonic()

    def look(_: int, later: FrameType | None) -> None:
        if handled(GeneratorExit) and time.monotonic() - begin < LONGEST:
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        elif not handled(KeyboardInterrupt):
            _stop(number)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, AGAIN)


class _Seen:
    """Whether Ctrl-C has come to this process."""

    signal = False


def interrupted() -> bool:
    """Return whether Ctrl-C has come."""
    return _Seen.signal


def handled(kind: type[BaseException]) -> bool:
    """Return whether an exception of a kind is being handled: by `except`, `finally`, the end of a `with`, a generator.

    Args:
        kind: class of the exception.
    """
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, kind):
        error = error.__context__
    return error is not None


def forget() -> None:
    """Drop a stop that still waits for its moment: another one has ended the command."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(number: int) -> None:
    raise KeyboardInterrupt


@dataclass(kw_only=True)
class _Deferral:
    """A stop that came while modules were imported; `since` is when it came, None while there is none."""

    since: float | None = None

    def by(self, number: int, frame: FrameType | None, stop: Callable[[int], None]) -> bool:
        """Call `stop` in a moment, and return True, where modules are imported now.

        Packages drop an exception that ends an import of theirs (torch's C++ does), or take it for a package that is
        missing: the stop would be lost, or reported as another error. An import that takes longer than LONGEST, or
        a second signal, ends the process at once, as its default does.

        Args:
            number: the signal.
            frame: where the signal arrived.
            stop: what is called, with the signal, once no module is imported.
        """
        if not importing(frame):
            self._forget()
            return False
        if self.since is not None:
            leave_at_once(number)
        self.since = time.monotonic()

        def look(_: int, later: FrameType | None) -> None:
            if not importing(later):
                self._forget()
                stop(number)
            elif time.monotonic() - (self.since or 0.0) > LONGEST:
                leave_at_once(number)
            else:
                signal.setitimer(signal.ITIMER_REAL, AGAIN)

        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        return True

    def _forget(self) -> None:
        """Let the stop be over: a look that comes later would break off what the stop cleans up."""
        if self.since is not None:
            self.since = None
            signal.setitimer(signal.ITIMER_REAL, 0)


_deferred = _Deferral()


def leave_at_once(number: int) -> None:
    """End this process by a signal that it got, without unwinding: a shell shows 130 for Ctrl-C, 143 for SIGTERM."""
    os.write(2, b"Stopped while modules were being loaded.\n")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def importing(frame: FrameType | None) -> bool:
    """Return whether a frame, or one that called it, is Python's import of a module."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            return True
        frame = frame.f_back
    return False


def status_of(stop: BaseException, otherwise: int) -> int:
    """Return the exit status for a stop as shells show it: 143 for SIGTERM, 129 for a closed terminal.

    Args:
        stop: what ended the command.
        otherwise: the status for anything else.
    """
    if isinstance(stop, TerminatedError):
        return TERMINATED
    number = getattr(signal, str(stop), None) if isinstance(stop, KeyboardInterrupt) and stop.args else None
    return otherwise if number is None else 128 + int(number)


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
