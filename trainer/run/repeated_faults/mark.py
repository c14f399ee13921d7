"""A mark of the running step in a mapped file, and of a fault's signal: it outlives the process.

A fault in a card's memory ends the process from within the driver, so that nothing can be written then. The page of a
mapped file stays with the kernel and outlives the process. The runtime of a card ends it by abort(3), a broken library
by SIGSEGV or SIGBUS: Python's faulthandler, in C, notes these. SIGKILL leaves no note. It comes from outside (the
kernel when memory ran out, a scheduler, a person), as does a power cut, and neither points at the card.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.device.memory import OutOfMemory
from trainer.distributed.collectives import Ranks
from trainer.engine.callbacks.callback import Callback
from trainer.storage.checkpoint_store import write_durably
from trainer.storage.untrusted_files import json_of

MARK = "step-{}.mark"  # one for each rank: where one dies, the others are stopped in order
NOTE = "step-{}.fault"  # what faulthandler writes when a signal of a fault ends the process; empty until then
HANGS = "watchdog/attempt*/hang.json"  # the watchdog has ended an attempt
FAULTS = "faults.json"  # the steps at which earlier attempts died, until the run is complete
MOST_FAULTS = 100
LAYOUT = struct.Struct("qqq")  # magic, state, step from 1
ENDED, RUNNING, FAULTED = 0, 1, 2  # in order; while steps are taken; by an error that the device reported
MAGIC = 0x524D_5354_4550_0001  # the last digits are the layout's version
UNKNOWN = "unknown"  # no fault was noted: SIGKILL, a power cut
NAMED = {  # by faulthandler (Modules/faulthandler.c of CPython)
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
}
DEVICE_ERRORS = ("HIP error:", "CUDA error:")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An attempt that died: the step that was running, from 1, how many remedies were in use, and of what.

    cause: a signal (SIGABRT), "error of the device", "hang", or UNKNOWN.
    """

    step: int
    remedies: int
    cause: str = UNKNOWN

    @property
    def known(self) -> bool:
        """Whether the process ended by itself or hung; UNKNOWN may be anything, SIGKILL from outside among it."""
        return self.cause != UNKNOWN


class StepMark(Callback):
    """Writes the number of the step that begins. One store a step."""

    accepts_launches = True

    def __init__(self, path: Path) -> None:
        self.path = path
        fresh = path.with_suffix(".new")
        fresh.write_bytes(LAYOUT.pack(MAGIC, RUNNING, 0))
        with fresh.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), LAYOUT.size)
        self._words = memoryview(self._map).cast("q")
        fresh.replace(path)

    def on_step_begin(self, run: Any) -> None:
        """Note the step; of several that are launched at once, the first."""
        self._words[2] = run.state.step + 1

    def end(self, state: int = ENDED) -> None:
        """Note how the process ends.

        Args:
            state: ENDED or FAULTED.
        """
        self._words[1] = state


@contextlib.contextmanager
def marked(folder: Path, ranks: Ranks, faults: Sequence[Fault]) -> Iterator[StepMark]:
    """Keep `faults` of earlier attempts, and mark this rank's steps until the block ends.

    An error of the device leaves the mark as a death does. When the run is complete both files are gone.

    Args:
        folder: folder of the unfinished run, which is open.
        ranks: the ranks before they are joined.
        faults: earlier attempts that died, the latest last; rank 0 keeps them.

    Raises:
        OSError: where the files cannot be written.
    """
    if ranks.is_main:
        begin(folder, ranks.world_size, faults)
    step, note = StepMark(folder / MARK.format(ranks.rank)), folder / NOTE.format(ranks.rank)
    try:
        with fatal_signals_written(note):
            yield step
    except BaseException as error:
        step.end(FAULTED if of_device(error) else ENDED)
        raise
    step.end()
    for path in (step.path, note):
        path.unlink(missing_ok=True)
    if ranks.is_main:
        (folder / FAULTS).unlink(missing_ok=True)


@contextlib.contextmanager
def fatal_signals_written(path: Path) -> Iterator[None]:
    """Have a signal that ends the process, SIGKILL aside, noted in `path` with the stacks of all threads.

    Raises:
        OSError: where the file cannot be written.
    """
    before = faulthandler.is_enabled()
    with path.open("wb") as file:
        faulthandler.enable(file, all_threads=True)
        try:
            yield
        finally:
            faulthandler.disable()
            if before and sys.__stderr__ is not None:
                with contextlib.suppress(ValueError, OSError):  # a stderr that is closed, or no file
                    faulthandler.enable(sys.__stderr__)


def begin(folder: Path, world_size: int, faults: Sequence[Fault]) -> None:
    """Keep `faults`, and remove the marks of ranks that this attempt does not have.

    Args:
        folder: folder of the unfinished run.
        world_size: number of ranks.
        faults: earlier attempts that died, the latest last.
    """
    if faults:
        write_durably(folder / FAULTS, json.dumps([asdict(fault) for fault in faults[-MOST_FAULTS:]]).encode() + b"\n")
    for name in (MARK, NOTE):
        here = {name.format(rank) for rank in range(world_size)}
        for path in folder.glob(name.format("*")):
            if path.name not in here:
                path.unlink(missing_ok=True)


def of_device(error: BaseException) -> bool:
    """Return whether the device reported an error after which this process cannot use it; out of memory is none."""
    if isinstance(error, OutOfMemory):
        return False
    kind = getattr(torch, "AcceleratorError", None)  # from torch 2.8 on
    return (kind is not None and isinstance(error, kind)) or (
        isinstance(error, RuntimeError) and str(error).startswith(DEVICE_ERRORS)
    )


def death_in(folder: Path, *, remedies: int) -> Fault | None:
    """Return how a process of the last attempt died; None where all ended in order or took no step.

    Where one rank dies its launcher ends the others with SIGKILL: a death whose cause is known comes first.

    Args:
        folder: folder of the unfinished run.
        remedies: how many were in use.
    """
    found = [_death_of(path, remedies) for path in folder.glob(MARK.format("*"))]
    return max((each for each in found if each), key=lambda fault: (fault.known, fault.step), default=None)


def _death_of(path: Path, remedies: int) -> Fault | None:
    try:
        magic, state, step = LAYOUT.unpack(path.read_bytes())
    except (OSError, struct.error):
        return None
    if magic != MAGIC or state not in (RUNNING, FAULTED) or step <= 0:
        return None
    cause = "error of the device" if state == FAULTED else cause_in(path.with_suffix(".fault"))
    return Fault(step=step, remedies=remedies, cause=cause)


def cause_in(note: Path) -> str:
    """Return the signal that a process noted when it ended, "hang" where the watchdog ended it, else UNKNOWN.

    The note is made when an attempt begins, and not written to until a signal is: a hang found later is of the attempt.
    """
    try:
        with note.open("rb") as file:
            first = file.readline(200).decode(errors="replace").strip()
        began = note.stat().st_mtime_ns
        if first:
            return NAMED.get(first.removeprefix("Fatal Python error: "), "a signal")
        hung = any(each.stat().st_mtime_ns >= began for each in note.parent.glob(HANGS))
    except OSError:
        return UNKNOWN
    return "hang" if hung else UNKNOWN


def faults_of(folder: Path) -> tuple[Fault, ...]:
    """Return the faults that `marked` kept; none where the file is not one of its."""
    try:
        rows = json_of(folder / FAULTS)
        found = tuple(Fault(**{"cause": UNKNOWN, **row}) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    numbers = all(type(each) is int and each >= 0 for fault in found for each in (fault.step, fault.remedies))
    whole = numbers and all(isinstance(fault.cause, str) for fault in found)
    return found[-MOST_FAULTS:] if whole else ()
