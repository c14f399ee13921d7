"""Callbacks of the training loop: the NaN guard and the telemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from torch import Tensor

if TYPE_CHECKING:
    from trainer.telemetry.nan_guard import NanGuard
    from trainer.telemetry.recorder import Telemetry

T = TypeVar("T")


@dataclass(kw_only=True)
class Watch:
    """Loop callbacks. The default has none. `show` is called when there are new figures for the progress line."""

    guard: NanGuard | None = None
    telemetry: Telemetry | None = None
    show: Callable[[], None] = lambda: None

    def step_begins(self) -> None:
        """Before a step computes anything.

        Raises:
            TrainerError: RM506 where an earlier step's loss was not finite.
        """
        if self.guard:
            self.guard.begin()

    def gradients_are_there(self, step: int, rows: Tensor, loss: Tensor) -> None:
        """Between backward pass and optimizer step; `rows` are this rank's row numbers.

        Args:
            step: number of the step, from 0.
            rows: this rank's row numbers, shape (rows,).
            loss: this rank's part of the mean loss, scalar.
        """
        if self.guard:
            self.guard.record(step, [rows], loss.reshape(1))

    def step_ended(self, rows: int) -> None:
        """After the optimizer step over `rows` rows of all ranks."""
        if self.telemetry and self.telemetry.on_step(rows):
            self.show()

    def launch_ended(self, first: int, batches: Sequence[Tensor], losses: Tensor) -> None:
        """After several steps at once, from number `first` on; `losses` (steps,).

        Args:
            first: number of the first step, from 0.
            batches: row numbers of each step.
            losses: shape (steps,).
        """
        if self.guard:
            self.guard.record(first, batches, losses)
        if self.telemetry and self.telemetry.on_step(sum(map(len, batches)), steps=len(batches)):
            self.show()

    def epoch_ends(self) -> None:
        """Before an epoch is measured.

        Raises:
            TrainerError: RM506 where a step's loss was not finite.
        """
        if self.guard:
            self.guard.check()

    def epoch_was(self, figures: Mapping[str, float]) -> None:
        """After an epoch was measured."""
        if self.telemetry:
            self.telemetry.on_epoch(figures)

    def timed(self, batches: Iterable[T]) -> Iterator[T]:
        """Yield `batches`; the time that each takes to come is waiting for data."""
        if self.telemetry is None:
            yield from batches
            return
        source = iter(batches)
        while True:
            with self.telemetry.waiting("data"):
                batch = next(source, None)
            if batch is None:
                return
            yield batch

    def communicating(self) -> AbstractContextManager[None]:
        """Time the exchange between ranks, as far as this process waits for it: gloo does, RCCL mostly does not."""
        return self.telemetry.waiting("comms") if self.telemetry else nullcontext()

    def close(self) -> None:
        """After the run, also after one that failed."""
        if self.telemetry:
            self.telemetry.close()
