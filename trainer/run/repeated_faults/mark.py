"""The step that is running, in a mapped file: what is left of it when a process dies without a message.

A fault in a card's memory ends the process from within the driver, so that nothing can be written then. The page of a
mapped file stays with the kernel and outlives the process.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import struct
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
FAULTS = "faults.json"  # the steps at which earlier attempts died, until the run is complete
MOST_FAULTS = 100
LAYOUT = struct.Struct("qqq")  # magic, 1 while steps are taken, step from 1
MAGIC = 0x524D_5354_4550_0001  # the last digits are the layout's version
DEVICE_ERRORS = ("HIP error:", "CUDA error:")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An attempt that died: the step that was running, from 1, and how many remedies were in use."""

    step: int
    remedies: int


class StepMark(Callback):
    """Writes the number of the step that begins. One store a step."""

    accepts_launches = True

    def __init__(self, path: Path) -> None:
        self.path = path
        fresh = path.with_suffix(".new")
        fresh.write_bytes(LAYOUT.pack(MAGIC, 1, 0))
        with fresh.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), LAYOUT.size)
        self._words = memoryview(self._map).cast("q")
        fresh.replace(path)

    def on_step_begin(self, run: Any) -> None:
        """Note the step; of several that are launched at once, the first."""
        self._words[2] = run.state.step + 1

    def end(self) -> None:
        """Note that the process ends in order."""
        self._words[1] = 0


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
    step = StepMark(folder / MARK.format(ranks.rank))
    try:
        yield step
    except BaseException as error:
        if not of_device(error):
            step.end()
        raise
    step.end()
    step.path.unlink(missing_ok=True)
    if ranks.is_main:
        (folder / FAULTS).unlink(missing_ok=True)


def begin(folder: Path, world_size: int, faults: Sequence[Fault]) -> None:
    """Keep `faults`, and remove the marks of ranks that this attempt does not have.

    Args:
        folder: folder of the unfinished run.
        world_size: number of ranks.
        faults: earlier attempts that died, the latest last.
    """
    if faults:
        write_durably(folder / FAULTS, json.dumps([asdict(fault) for fault in faults[-MOST_FAULTS:]]).encode() + b"\n")
    here = {MARK.format(rank) for rank in range(world_size)}
    for path in folder.glob(MARK.format("*")):
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


def died_at(folder: Path) -> int | None:
    """Return the step at which a process of the last attempt died; None where all ended in order or took no step."""
    return max(filter(None, map(_died_at, folder.glob(MARK.format("*")))), default=None)


def _died_at(path: Path) -> int | None:
    try:
        magic, running, step = LAYOUT.unpack(path.read_bytes())
    except (OSError, struct.error):
        return None
    return step if magic == MAGIC and running == 1 and step > 0 else None


def faults_of(folder: Path) -> tuple[Fault, ...]:
    """Return the faults that `marked` kept; none where the file is not one of its."""
    try:
        rows = json_of(folder / FAULTS)
        found = tuple(Fault(step=row["step"], remedies=row["remedies"]) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    whole = all(type(each) is int and each >= 0 for fault in found for each in (fault.step, fault.remedies))
    return found[-MOST_FAULTS:] if whole else ()
