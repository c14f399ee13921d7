"""A training run as one value: its plan, its model and data, its state, and its callbacks.

This module is below the loop, so that the loop's parts can name it without importing each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainer.config.batch_schedule import CONSTANT, BatchSchedule
from trainer.data.loading.sampler import Sampler
from trainer.device.memory import first_size
from trainer.device.precision import Precision
from trainer.distributed.collectives import Ranks
from trainer.engine.callbacks.callback import TakenSteps
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.optimizer import optimizer_of
from trainer.engine.state import TrainState
from trainer.models.losses import LossSum, squared_error_sum
from trainer.runtime.signals import Stop
from trainer.tasks.task import BatchWeight, Partition


class Captured(Protocol):
    """Forward and backward of a micro-batch as captured graphs, see `steps.captured_pass`."""

    def __call__(self, inputs: Any, targets: Any, weight: Any) -> Tensor | None:
        """Return the loss with the gradients in place, or None where the micro-batch is to be computed as usual."""

    def make_room(self) -> None:
        """Give the graphs' memory back where what the device has free is less."""

    def release(self) -> bool:
        """Give the graphs' memory back; return whether there was any."""


# Yields what was taken, whether the run is asked to stop, and whether a checkpoint is due.
Launches = Callable[["Training"], Iterator[tuple[TakenSteps, bool, bool]]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Plan of a run: its length, batches, optimizer and limits.

    Args:
        epochs: passes over the training rows; with `max_steps` as many as these steps take.
        batch_size: rows of a step until `batch_schedule` sets another number.
        micro_batch: rows at a time on a rank at most; None for as many as fit.
        max_steps: steps of the whole run, None where epochs decide.
        eval_every: steps between measurements of the validation loss, None for one at the end of each epoch.
        patience: measurements without a lower validation loss after which the run ends; None for no such end.
        clip_norm: largest norm of all gradients together; None for no limit.
        best_on_host: whether the best weights are kept in host memory, not on the device.
        optimizer: value of --optimizer.
        muon_learning_rate: value of --muon-learning-rate.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    micro_batch: int | None = None
    batch_schedule: BatchSchedule = CONSTANT
    max_steps: int | None = None
    eval_every: int | None = None
    patience: int | None = None
    clip_norm: float | None = None
    best_on_host: bool = False
    optimizer: str = "adamw"
    muon_learning_rate: float | None = None


class StoppedError(Exception):
    """The run was asked to end and has kept a checkpoint of where it is."""


@dataclass(kw_only=True)
class Training:
    """A run in progress: its plan, what it works on, and where it stands.

    `model` holds the weights, `forward` is what is called (wrapped for several ranks). `epochs` is the plan's, or as
    many as its `max_steps` take. `most_rows` limits the rows that a rank computes at a time, by request or because
    memory ran out in an earlier attempt.
    """

    plan: Plan
    model: nn.Module
    optimizer: torch.optim.Optimizer
    train: Partition
    validation: Partition
    sampler: Sampler
    epochs: int
    state: TrainState
    precision: Precision
    scaler: torch.amp.GradScaler | None = None
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None
    forward: nn.Module
    ranks: Ranks = field(default_factory=Ranks)
    loss_sum: LossSum = squared_error_sum
    callbacks: Callbacks = field(default_factory=Callbacks)
    should_stop: bool = False  # a callback's wish on this rank
    stop_agreed: bool = False  # that of any rank
    stop: Stop = field(default_factory=Stop)
    guarded: bool = False
    batch_weight: BatchWeight | None = None
    keep_last: bool = False
    loader_workers: int = 0
    most_rows: int | None = None
    launches: Launches | None = None  # takes whole batches faster, in the same way; the loop takes the rest
    captured: Captured | None = None  # computes micro-batches of one size faster, in the same way
    device: torch.device

    @property
    def steps(self) -> int:
        """Steps of the whole run, if no early stop ends it."""
        most = self.plan.max_steps
        return self.sampler.steps(self.epochs) if most is None else most

    @property
    def ended(self) -> bool:
        """Whether no step is left: all are taken, the loss has not fallen for long enough, or a callback ended it."""
        state, plan = self.state, self.plan
        if self.stop_agreed or state.epoch >= self.epochs:
            return True
        if plan.max_steps is not None and state.step >= plan.max_steps:
            return True
        return plan.patience is not None and state.measurements_without_gain() >= plan.patience

    @property
    def stopped_early(self) -> bool:
        """Whether the run ended as the validation loss no longer fell."""
        return self.ended and not self.stop_agreed and self.state.epoch < self.epochs and self.state.step < self.steps

    @property
    def measurements(self) -> int:
        """Measurements of the whole run, if no early stop ends it."""
        every = self.plan.eval_every
        return self.epochs if every is None else -(-self.steps // every)

    def steps_until_measured(self) -> int | None:
        """Return the steps to the next one after which the loop does more than step; None where epochs decide."""
        step, plan = self.state.step, self.plan
        every = [] if plan.eval_every is None else [plan.eval_every - step % plan.eval_every]
        left = [] if plan.max_steps is None else [plan.max_steps - step]
        return min(every + left, default=None)


def new_training(
    model: nn.Module,
    train: Partition,
    validation: Partition,
    plan: Plan,
    *,
    precision: Precision | None = None,
    ranks: Ranks | None = None,
    device: torch.device | None = None,
    **more: Any,
) -> Training:
    """Return a run at its beginning.

    Args:
        model: network with its first weights.
        device: where this rank computes; None for the model's own. They differ where the model is to be split among
            ranks: it waits in host memory until `ranks.prepare` has cut it.
        more: further fields of `Training`.
    """
    ranks, weights = ranks or Ranks(), next(model.parameters())
    device = device or weights.device
    precision = precision or Precision(name="fp32", reason="default", device_type=device.type)
    scaler = precision.scaler()
    sampler = Sampler(rows=len(train), batch_size=plan.batch_size, seed=plan.seed, schedule=plan.batch_schedule)
    share = -(-min(plan.batch_size, len(train)) // ranks.world_size)
    losses, sizes = (torch.zeros(sampler.count(0), device=device, dtype=_summed(model)) for _ in range(2))
    return Training(
        plan=plan,
        model=model,
        forward=ranks.prepare(model),
        optimizer=_optimizer(model, plan, precision, fused=ranks.world_size == 1 and scaler is None),
        train=train,
        validation=validation,
        sampler=sampler,
        epochs=plan.epochs if plan.max_steps is None else sampler.epochs(plan.max_steps),
        state=TrainState(losses=losses, weights=sizes, micro_batch=first_size(plan.micro_batch, share)),
        precision=precision,
        scaler=scaler,
        ranks=ranks,
        most_rows=plan.micro_batch,
        device=device,
        # only an accelerator's memory runs out by exception
        **({"guarded": device.type != "cpu" and ranks.undoes} | more),
    )


def _summed(model: nn.Module) -> torch.dtype:
    """Return the type that losses are summed in: that of the weights, at least fp32."""
    return torch.promote_types(next(model.parameters()).dtype, torch.float32)


def _optimizer(model: nn.Module, plan: Plan, precision: Precision, *, fused: bool) -> torch.optim.Optimizer:
    return optimizer_of(
        plan.optimizer,
        model,
        plan.learning_rate,
        fused=fused,
        products=torch.bfloat16 if precision.name == "bf16" else _summed(model),
        muon_learning_rate=plan.muon_learning_rate,
    )


def changing_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights that training changes, and the buffers that are not constant.

    Frozen weights, in 4 bits or whole, are made again from where they came.
    """
    frozen = {name for name, weight in model.named_parameters() if not weight.requires_grad}
    for prefix, module in model.named_modules():
        if getattr(module, "constant", False):
            frozen |= {f"{prefix}.{name}" for name, _ in module.named_buffers(recurse=False)}
    return {name: value for name, value in model.state_dict().items() if name not in frozen}
