"""Processes that compute blocks, and end at once when they are asked to.

A process that is ended while it hands over a result leaves half a message behind, and its parent waits for the rest for
ever. So a worker is not ended: SIGTERM makes what it computes fail, and all that it is given later. One that is still
starting would end by it, and leave the pool broken amid a message: it begins with the signal blocked.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from types import FrameType
from typing import ParamSpec, TypeVar

from trainer.runtime.signals import ending_signals, held_back

Taken = ParamSpec("Taken")
Given = TypeVar("Given")


class StoppedError(Exception):
    """What a worker computed was not wanted any more."""


class _Now:
    """Whether this worker computes, and whether it was asked to stop."""

    computes = False
    stopped = False


class _Pool(ProcessPoolExecutor):
    """A pool whose workers, which `submit` starts, are started whole, and reached by signals once they listen."""

    def submit(self, fn: Callable[Taken, Given], /, *args: Taken.args, **kwargs: Taken.kwargs) -> Future[Given]:
        with held_back():
            return super().submit(fn, *args, **kwargs)


@contextlib.contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Hand out a pool; on an error its processes stop computing, and it ends in less than a second of their time.

    Workers are started afresh, because a fork of a program that has threads may hang.
    """
    others = {process.pid for process in multiprocessing.active_children()}
    pool = _Pool(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_listen)
    try:
        yield pool
    except BaseException:  # Ctrl-C and the end of a generator, too
        for process in multiprocessing.active_children():
            if process.pid not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _listen() -> None:
    """Leave Ctrl-C, which a terminal sends to every process, to the parent, and let SIGTERM stop computing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, *ending_signals()))


def _stop(number: int, frame: FrameType | None) -> None:
    _Now.stopped = True
    if _Now.computes:
        _Now.computes = False
        raise StoppedError


def unless_stopped(compute: Callable[Taken, Given], *given: Taken.args, **named: Taken.kwargs) -> Given:
    """Return what `compute` returns, in a worker.

    Args:
        compute: function to call.
        given: its positional arguments.
        named: its keyword arguments.

    Raises:
        StoppedError: where the worker was asked to stop.
    """
    if _Now.stopped:
        raise StoppedError
    _Now.computes = True
    try:
        return compute(*given, **named)
    finally:
        _Now.computes = False
