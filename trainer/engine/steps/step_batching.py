"""Several steps of an epoch at a time, and between them all that the loop does between two steps.

Whoever takes the steps ends each launch where a checkpoint is due or the run is to stop, so both happen after the
same steps as in the loop. The last batch of an epoch, where it is smaller, is the loop's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from trainer.engine.callbacks.callback import TakenSteps
from trainer.engine.training import Training


class Steps(Protocol):
    """Interface of an object that takes several steps at a time, over batches of one size."""

    most: int

    def take(self, rows: Tensor, losses: Tensor) -> None:
        """Take a step for each batch of `rows` (steps * batch,), at most `most`; write `losses` (steps,)."""


@dataclass(frozen=True, kw_only=True)
class Launches:
    """The whole batches of an epoch in launches of at most `most` steps.

    `steps` are by the rows of a batch; an epoch whose batches have another size is the loop's.
    """

    steps: Mapping[int, Steps]

    def __call__(self, training: Training) -> Iterator[tuple[TakenSteps, bool, bool]]:
        """Take all whole batches still to come; yield the steps of each launch, whether to stop, and what is due."""
        state, sampler = training.state, training.sampler
        size = sampler.size(state.epoch)
        steps = self.steps.get(size)
        if steps is None or state.micro_batch.size < size:
            return  # in the second case memory ran out, and batches are taken in pieces
        whole = sampler.rows // size
        order = sampler.order(state.epoch)
        on_device = order.to(training.device)
        while state.batch < whole and not training.ended:
            training.callbacks.on_step_begin(training)
            first = state.batch
            batches, stop, due = planned(training, order, most_steps(training, steps.most, whole))
            span = slice(first * size, state.batch * size)
            losses = state.losses[first : state.batch]
            with training.ranks.section("forward"):
                steps.take(on_device[span], losses)
            yield TakenSteps(state.step - len(batches) + 1, batches, losses), stop, due


def most_steps(training: Training, most: int, whole: int) -> int:
    """Return how many steps the next launch takes at most: it ends where the loss is to be measured.

    Args:
        most: steps of one launch at most.
        whole: batches of full size in the epoch.
    """
    until = training.steps_until_measured()
    most = min(most, whole - training.state.batch)
    return most if until is None else min(most, until)


def planned(training: Training, order: Tensor, most: int) -> tuple[list[Tensor], bool, bool]:
    """Count the steps of the next launch as taken; return their row numbers, whether to stop and what is due.

    Args:
        order: row numbers of the whole epoch in their order, shape (rows,).
        most: steps of one launch at most.
    """
    state = training.state
    size = training.sampler.size(state.epoch)
    batches: list[Tensor] = []
    for rows in order[state.batch * size : (state.batch + most) * size].split(size):
        due = training.callbacks.checkpoint_due(training)
        stop = training.stop.requested
        state.chain.add(rows)
        state.batch, state.step = state.batch + 1, state.step + 1
        state.micro_batch.count()
        batches.append(rows)
        if stop or due:
            break
    return batches, stop, due
