"""Measure the throughput of a larger batch where launches bound a run, and suggest it; training is not changed.

The timed steps are rolled back: weights, moments, buffers and random numbers are those before, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from trainer.config.batch_schedule import CONSTANT
from trainer.data.loading.placement import TensorPartition
from trainer.device.memory import first_size
from trainer.engine.steps.manual_autograd import DirectSteps
from trainer.engine.steps.step_strategy import Choice, Memory, arithmetic, eager_steps, timed
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError

LARGER = 8  # times the batch
FEWEST = 10  # whole batches that an epoch should still have
GAIN = 2.0  # times the rows a second, or nothing is reported
STEPS = 8  # timed at each size


@dataclass(frozen=True, kw_only=True)
class BatchSizeSuggestion:
    """Rows a second at the run's batch and at a larger one."""

    batch_size: int
    rows_per_second: float
    larger: int
    larger_rows_per_second: float

    def message(self) -> str:
        """Return the advice as one line."""
        times = self.larger // self.batch_size
        return (
            f"batch {self.batch_size:,} trains {self.rows_per_second:,.0f} rows/s; batch {self.larger:,} would train "
            f"{self.larger_rows_per_second:,.0f} rows/s (measured now, {STEPS} steps each). It is another training: "
            f"fewer steps an epoch; --learning-rate times {times} or its root is your choice"
        )


def suggest_batch_size(training: Training, choice: Choice) -> BatchSizeSuggestion | None:
    """Return what a larger batch would gain, None where it would not double the rows a second or cannot be timed."""
    if not can_be_timed(training, choice):
        return None
    size = training.sampler.batch_size
    before = Memory.of(training)
    try:
        now, larger = (rate(training, choice, rows, before) for rows in (size, LARGER * size))
    except TrainerError:
        return None  # the larger batch does not fit into the device's memory
    finally:
        before.restore(training)
    if larger < GAIN * now:
        return None
    return BatchSizeSuggestion(
        batch_size=size, rows_per_second=now, larger=LARGER * size, larger_rows_per_second=larger
    )


def can_be_timed(training: Training, choice: Choice) -> bool:
    """Return whether a few steps of either size are quick and can be rolled back whole.

    A graph would have to be captured anew, and a compiled model compiled. Where the schedule reaches that size, nothing
    is suggested.
    """
    plain = isinstance(training.train, TensorPartition) and training.forward is training.model
    plain = plain and training.scaler is None and training.ranks.world_size == 1
    sampler, larger = training.sampler, LARGER * training.sampler.batch_size
    enough = sampler.rows >= FEWEST * larger and max(sampler.different(0, training.epochs)) < larger
    return plain and enough and choice.name in ("direct", "eager") and arithmetic(training) is None


def rate(training: Training, choice: Choice, size: int, before: Memory) -> float:
    """Return rows a second in batches of `size`; leaves the weights anywhere.

    Args:
        size: rows of a batch.
    """
    there = replace(
        training,
        sampler=replace(training.sampler, batch_size=size, schedule=CONSTANT),
        state=replace(training.state, micro_batch=first_size(None, size)),
        scheduler=None,
    )
    rows = there.sampler.order(there.state.epoch)[: STEPS * size].to(there.device)
    there.model.train()
    take: Callable[[Tensor, Tensor], None]
    take = DirectSteps(there).take if choice.name == "direct" else partial(eager_steps, there)
    _, seconds = timed(there, before, lambda losses: take(rows, losses), STEPS)
    return size / seconds
