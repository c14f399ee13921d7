"""The card for one process at a time, while others of the same benchmark start, compile and wait.

Processes that name the same folder are members. One that times something takes the folder's lock and stops the
others (SIGSTOP, whole process groups), so that neither card nor processors do anything else; then they continue.
Compilers' workers that began sessions of their own are not stopped: they have nothing to do once a member compiled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

SETTLED_S = 0.3  # in which the card does what stopped processes had asked of it


class Alone:
    """The card for oneself among the members of a folder; without a folder nothing is waited for."""

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.depth, self.waited = folder, 0, 0.0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.lock = (folder / "lock").open("w")
            fcntl.flock(self.lock, fcntl.LOCK_EX)  # one that began now would not be stopped
            (folder / str(os.getpgrp())).touch()
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the card within the context."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Wait for the card, and stop the other members."""
        self.depth += 1
        if self.folder is None or self.depth > 1:
            return
        began = time.perf_counter()
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        signalled(self.folder, signal.SIGSTOP)
        time.sleep(SETTLED_S)
        self.waited += time.perf_counter() - began

    def leave(self) -> None:
        """Have the other members continue, and give the card to the next."""
        self.depth -= 1
        if self.folder is None or self.depth:
            return
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        signalled(self.folder, signal.SIGCONT)
        fcntl.flock(self.lock, fcntl.LOCK_UN)


def signalled(folder: Path, number: signal.Signals) -> None:
    """Send a signal to all members but the own process group; ended ones are left out.

    Args:
        folder: of the members.
    """
    for path in folder.iterdir():
        if path.name.isdigit() and int(path.name) != os.getpgrp():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(path.name), number)


def left(folder: Path, group: int) -> None:
    """Take an ended process group from the members, and have all continue whom it may have stopped.

    Args:
        folder: of the members.
        group: number of the process group.
    """
    (folder / str(group)).unlink(missing_ok=True)
    with (folder / "lock").open("w") as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by a member: that one stopped the others, and goes on
        signalled(folder, signal.SIGCONT)


@contextlib.contextmanager
def trials_alone(alone: Alone) -> Iterator[None]:
    """Have the trials of faster ways timed alone within the context; what compiles does so before the others stop."""
    from trainer.engine.steps import captured_trial
    from trainer.models.fast import attention, block_trial, cross_entropy, proof

    timing, seconds_of = (block_trial, attention, cross_entropy), proof.seconds_of
    passes_timed = captured_trial.timed

    def timed(work: Callable[[], object], device: torch.device) -> float:
        work()
        with alone.held():
            return seconds_of(work, device)

    def passes(training: Any, batch: Any) -> tuple[float, float]:
        with alone.held():
            return passes_timed(training, batch)

    def put(function: Any, of_passes: Any) -> None:
        captured_trial.timed = of_passes
        for module in timing:
            module.seconds_of = function  # type: ignore[attr-defined]

    put(timed, passes)
    try:
        yield
    finally:
        put(seconds_of, passes_timed)
