"""Find the first step at which two runs diverge, in batch or in loss."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.storage.run_folder import folder_of

LOG = "batches.jsonl"
HEX = 8  # digits a step: four bytes of the chain, four of the loss


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a run's log, as hex: its link of the chain of batches, and its loss's float32 bits."""

    step: int
    epoch: int
    link: str
    loss: str


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The outcome: `steps` that both runs have, and the first that differs; `what` is `batch` or `loss`."""

    steps: int
    step: int | None = None
    epoch: int | None = None
    what: str | None = None
    losses: tuple[float, float] | None = None


def compare(first: Path, second: Path) -> int:
    """Compare two runs and print the result; return 0 where the steps that both have agree, 1 where they diverge.

    Raises:
        TrainerError: RM556 where a run has no log of batches.
    """
    divergence = divergence_of(list(steps_of(first)), list(steps_of(second)))
    emit("compare", runs=[str(first), str(second)], same=divergence.step is None, **asdict(divergence))
    say(message(divergence))
    return int(divergence.step is not None)


def divergence_of(first: list[Step], second: list[Step]) -> Divergence:
    """Return the first step that differs; a batch that differs is named before the loss it leads to."""
    both = min(len(first), len(second))
    for one, other in zip(first, second, strict=False):
        if (one.link, one.loss) != (other.link, other.loss):
            what = "batch" if one.link != other.link else "loss"
            losses = number(one.loss), number(other.loss)
            return Divergence(steps=both, step=one.step, epoch=one.epoch, what=what, losses=losses)
    return Divergence(steps=both)


def steps_of(run: Path) -> Iterator[Step]:
    """Yield the steps in a run's log; `run` is its folder, or the unfinished twin's place.

    Raises:
        TrainerError: RM556 where there is none, or it cannot be read.
    """
    log = next(
        (place / LOG for place in (run, folder_of(run.parent, run.name).partial) if (place / LOG).exists()), None
    )
    if log is None:
        raise TrainerError("RM556", what=f"no {LOG}", where=str(run))
    for line in log.read_text().splitlines():
        try:
            yield from _steps(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise TrainerError("RM556", what=f"a line that is no epoch: {error}", where=str(log)) from None


def number(bits: str) -> float:
    """Return the float32 that eight hex digits stand for."""
    value: float = struct.unpack(">f", bytes.fromhex(bits))[0]
    return value


def message(divergence: Divergence) -> str:
    """Return the outcome as a sentence."""
    if divergence.step is None:
        return f"equal  all {divergence.steps:,} steps that both runs have, batch by batch and loss by loss"
    losses = "" if divergence.losses is None else " and ".join(f"{loss:.9g}" for loss in divergence.losses)
    reason = {"batch": "they take different rows", "loss": "the rows are the same, the arithmetic is not"}
    place = f"step {divergence.step:,}, epoch {divergence.epoch}"
    return f"diverged at {place}: {reason[divergence.what or '']}; losses {losses}"


def _steps(line: dict[str, Any]) -> Iterator[Step]:
    links, losses = line["links"], line["losses"]
    for index in range(len(links) // HEX):
        digits = slice(index * HEX, (index + 1) * HEX)
        yield Step(step=line["first_step"] + index, epoch=line["epoch"], link=links[digits], loss=losses[digits])
