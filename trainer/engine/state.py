"""State of a training run as one value: with the weights it is all that the next step depends on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from trainer.device.memory import MicroBatch
from trainer.engine.batch_hash import HashChain


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One finished epoch. Losses are mean squared errors of scaled targets; the rate counts training rows.

    With measurements between epochs it is what was found since the one before, after `step` steps.

    `batches` is the head of the hash chain over all batches so far, `skipped` the steps that an overflow of
    fp16 cost so far.
    """

    epoch: int
    train_loss: float
    validation_loss: float
    seconds: float
    rows_per_second: float
    best: bool
    batches: str = ""
    skipped: int = 0
    step: int | None = None

    def figures(self) -> dict[str, Any]:
        """Return the fields; `step` only where steps decide when a run is measured or ends."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("step", None)}

    def facts(self) -> dict[str, Any]:
        """Return all but the clock's part: equal for equal runs, interrupted or not."""
        return {name: value for name, value in self.figures().items() if name not in ("seconds", "rows_per_second")}


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Over batches that no measurement counted yet: their losses times weights, weights, and rows."""

    loss: float = 0.0
    weight: float = 0.0
    rows: int = 0


@dataclass(kw_only=True)
class TrainState:
    """State that changes from step to step, apart from weights, optimizer and random number generators.

    `step` counts batches taken, `epoch` finished epochs, `batch` batches taken of the current one: the
    sampler's position. `micro_step` is 0 between steps, the only place where a checkpoint is taken.
    `losses` (batches of an epoch,) holds this rank's part of each batch's mean loss, on the device, `weights`
    what each batch weighs, where that is not its rows.
    `sums` are those of earlier epochs since the last measurement, and `counted` batches of this one are in it already.
    `logged` counts the bytes of the run's log of batches that belong to this state.
    """

    losses: Tensor
    weights: Tensor
    micro_batch: MicroBatch
    step: int = 0
    epoch: int = 0
    batch: int = 0
    micro_step: int = 0
    skipped: int = 0
    seconds: float = 0.0
    lowest: float = math.inf
    best: dict[str, Tensor] = field(default_factory=dict)
    chain: HashChain = field(default_factory=HashChain)
    history: list[Epoch] = field(default_factory=list)
    logged: int = 0
    sums: Sums = field(default_factory=Sums)
    counted: int = 0

    def measurements_without_gain(self) -> int:
        """Return how many measurements came after that of the lowest validation loss."""
        losses = [epoch.validation_loss for epoch in self.history]
        return len(losses) - 1 - losses.index(min(losses)) if losses else 0

    def as_tree(self) -> dict[str, Any]:
        """Return the state as nested plain data and tensors."""
        nested = ("micro_batch", "chain", "history", "sums")
        plain = {name: value for name, value in vars(self).items() if name not in nested}
        return plain | {
            "micro_batch": asdict(self.micro_batch),
            "chain": {"head": self.chain.head, "links": bytes(self.chain.links)},
            "history": [asdict(epoch) for epoch in self.history],
            "sums": asdict(self.sums),
        }

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> TrainState:
        """Return the state that `as_tree` described.

        Raises:
            TypeError: where a field is unknown or missing.
            ValueError: for a state in the middle of a step.
        """
        if tree["micro_step"]:
            raise ValueError(f"the state is in the middle of a step, at micro-step {tree['micro_step']}")
        nested = {
            "micro_batch": MicroBatch(**tree["micro_batch"]),
            "chain": HashChain(head=tree["chain"]["head"], links=bytearray(tree["chain"]["links"])),
            "history": [Epoch(**epoch) for epoch in tree["history"]],
            "sums": Sums(**tree.get("sums", {})),
        }
        return cls(**(tree | nested))
