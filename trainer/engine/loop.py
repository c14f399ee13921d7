"""The training loop, top to bottom. Everything a step depends on is in `Training`, and `TrainState` says where it is.

The data are on the device before it starts, and it waits for the device once an epoch. Where it can be
interrupted, it is between two steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainer.config.batch_schedule import CONSTANT, BatchSchedule
from trainer.data.loading.placement import Part as Part  # noqa: PLC0414 -- others take it from here
from trainer.data.loading.placement import batches
from trainer.data.loading.sampler import Sampler
from trainer.device.memory import OutOfMemory, Undo, first_size, may_grow, reserve
from trainer.device.precision import Precision
from trainer.distributed.collectives import Ranks
from trainer.engine.batch_size_change import change_batches
from trainer.engine.oom_recovery import cut_smaller, grow_back, lost, stepped
from trainer.engine.state import Epoch, TrainState
from trainer.models.losses import LossSum, mean_loss, squared_error_sum
from trainer.runtime.errors import TrainerError
from trainer.runtime.signals import Stop
from trainer.telemetry.hooks import Watch

Weigh = Callable[[Tensor], Tensor]
Launches = Callable[["Training"], Iterator[tuple[bool, bool]]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to do; `micro_batch` None means as many rows at a time as fit.

    `batch_size` holds until `batch_schedule` sets another.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    micro_batch: int | None = None
    batch_schedule: BatchSchedule = CONSTANT


class Keeper(Protocol):
    """Who keeps checkpoints: asked once a step whether one is due, told to take one, told of finished epochs."""

    def due(self, state: TrainState) -> bool:
        """Return whether it is time for a checkpoint; only rank 0's answer counts."""

    def keep(self, training: Training, *, final: bool = False) -> None:
        """Take a checkpoint on all ranks; with `final`, return when it is on the disk."""

    def memory_ran_out(self, rows: int) -> None:
        """Leave word that the next attempt is to compute at most `rows` rows at a time; on any rank."""

    def log(self, state: TrainState, line: dict[str, Any]) -> None:
        """Add a line on the batches of an epoch to the run's log."""

    def close(self) -> None:
        """Wait until what is being written is written."""


class StoppedError(Exception):
    """The run was asked to end and has kept a checkpoint of where it is."""


@dataclass(kw_only=True)
class Training:
    """A run in motion. `model` is what holds the weights, `forward` what is called (wrapped for several ranks).

    `most_rows` is what a rank computes at a time at most, by request or because memory ran out in an earlier attempt.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    train: Part
    validation: Part
    sampler: Sampler
    epochs: int
    state: TrainState
    precision: Precision
    scaler: torch.amp.GradScaler | None = None
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None
    forward: nn.Module
    ranks: Ranks = field(default_factory=Ranks)
    loss_sum: LossSum = squared_error_sum
    keeper: Keeper | None = None
    stop: Stop = field(default_factory=Stop)
    guarded: bool = False
    weigh: Weigh | None = None
    keep_last: bool = False
    loader_workers: int = 0
    most_rows: int | None = None
    watch: Watch = field(default_factory=Watch)
    launches: Launches | None = None  # takes whole batches faster, in the same way; the loop takes the rest
    device: torch.device


def new_training(
    model: nn.Module,
    train: Part,
    validation: Part,
    plan: Plan,
    *,
    precision: Precision | None = None,
    ranks: Ranks | None = None,
    device: torch.device | None = None,
    **more: Any,
) -> Training:
    """Return a run at its beginning; `more` are further fields of `Training`.

    `device` is where this rank computes. It is the model's own unless that is to be split among ranks: such a one
    waits in host memory until `ranks.prepare` has cut it.
    """
    ranks, weights = ranks or Ranks(), next(model.parameters())
    device = device or weights.device
    precision = precision or Precision(name="fp32", reason="default", device_type=device.type)
    scaler = precision.scaler()
    sampler = Sampler(rows=len(train), batch_size=plan.batch_size, seed=plan.seed, schedule=plan.batch_schedule)
    share = -(-min(plan.batch_size, len(train)) // ranks.world_size)
    losses, sizes = (torch.zeros(sampler.count(0), device=device, dtype=weights.dtype) for _ in range(2))
    return Training(
        model=model,
        forward=ranks.prepare(model),
        optimizer=adamw(model, plan.learning_rate, fused=ranks.world_size == 1 and scaler is None),
        train=train,
        validation=validation,
        sampler=sampler,
        epochs=plan.epochs,
        state=TrainState(losses=losses, weights=sizes, micro_batch=first_size(plan.micro_batch, share)),
        precision=precision,
        scaler=scaler,
        ranks=ranks,
        most_rows=plan.micro_batch,
        device=device,
        # only an accelerator's memory runs out by exception
        **({"guarded": device.type != "cpu" and ranks.undoes} | more),
    )


def adamw(model: nn.Module, learning_rate: float, *, fused: bool) -> torch.optim.AdamW:
    """Return the optimizer; `fused` is one kernel for all weights, on CPUs and cards alike."""
    known = {weight.device.type for weight in model.parameters()} <= {"cpu", "cuda"}
    return torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=(fused and known) or None)


def fit(training: Training, on_epoch: Callable[[Epoch], None]) -> list[Epoch]:
    """Train on from where the state is, leave the best weights, return all epochs.

    The best are those of the lowest validation loss, or with `keep_last` the last.

    Raises:
        TrainerError: RM530 as soon as a loss is not finite, RM523 where one row is too much for the memory.
        StoppedError: when the run was asked to end; a checkpoint was taken where there is a keeper.
    """
    state = training.state
    while state.epoch < training.epochs:
        run_epoch(training)
        with training.ranks.section("evaluation"):
            epoch = close_epoch(training)
        on_epoch(epoch)
    training.ranks.load_model(training.model, state.best)
    return state.history


def run_epoch(training: Training) -> None:
    """Take one optimizer step for each batch of the epoch that is still to come."""
    state, keeper = training.state, training.keeper
    training.forward.train()
    if state.batch == 0:
        change_batches(training)
    began = time.perf_counter()
    for stop, due in steps(training):
        now = time.perf_counter()
        state.seconds, began = state.seconds + now - began, now
        if keeper and (stop or due):
            with training.ranks.section("checkpoint"):
                keeper.keep(training, final=stop)
        if stop:
            raise StoppedError


def steps(training: Training) -> Iterator[tuple[bool, bool]]:
    """Take the steps of the epoch that are still to come; after each launch, yield whether to stop and what is due."""
    if training.launches is not None:
        yield from training.launches(training)
    for rows, inputs, targets in training.watch.timed(share_of_batches(training)):
        yield take_step(training, rows, inputs, targets)


def share_of_batches(training: Training) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield each batch still to come of this epoch: all its row numbers, and this rank's inputs and targets."""
    state, ranks = training.state, training.ranks
    source = batches(
        training.train,
        training.sampler,
        epoch=state.epoch,
        start=state.batch,
        share=ranks.share,
        device=training.device,
        workers=training.loader_workers,
    )
    while True:
        with ranks.section("data"):
            batch = next(source, None)
        if batch is None:
            return
        yield batch


def weight_of(training: Training, targets: Tensor, rows: int) -> float | Tensor:
    """Return the weight of a batch over all ranks: its rows, or the sum of what `weigh` finds in them."""
    if training.weigh is None:
        return rows
    weight = training.weigh(targets)
    if training.ranks.share(rows) != slice(0, rows):
        weight = training.ranks.sum(weight)
    training.state.weights[training.state.batch] = weight
    return torch.where(weight > 0, weight, 1)  # a batch of nothing but padding has no gradient


def take_step(training: Training, rows: Tensor, inputs: Tensor, targets: Tensor) -> tuple[bool, bool]:
    """Learn from one batch; return whether to stop and whether a checkpoint is due.

    A batch that does not fit is undone on all ranks and cut smaller, until it does.
    """
    state, ranks = training.state, training.ranks
    ranks.at_step(state.step)
    training.watch.step_begins()
    weight = weight_of(training, targets, len(rows))
    while True:
        undo = Undo.of(training.model, training.device) if training.guarded else None
        loss = gradients(training, inputs, targets, rows=len(rows), weight=weight)
        due = ranks.leads and training.keeper is not None and training.keeper.due(state)
        short, stop, due = ranks.any(loss is None, training.stop.asked, due)
        if loss is not None and not short and learned(training, rows, loss):
            break
        cut_smaller(training, undo)
    state.losses.select(0, state.batch).copy_(loss)  # an index in brackets costs three times as much
    state.chain.add(rows)
    state.batch, state.step = state.batch + 1, state.step + 1
    training.watch.step_ended(len(rows))
    if state.micro_batch.count() and not any(ranks.any(not may_grow(state.micro_batch, training.device))):
        grow_back(training)
    return stop, due


def learned(training: Training, rows: Tensor, loss: Tensor) -> bool:
    """Bring the gradients of all ranks together and take the step; False where that is to be undone, as `stepped`."""
    ranks = training.ranks
    training.watch.gradients_are_there(training.state.step + 1, rows[ranks.share(len(rows))], loss)
    if ranks.world_size > 1:
        with training.watch.communicating():
            ranks.sum_gradients(list(training.model.parameters()))
            ranks.share_buffers(training.model)
    with ranks.section("optimizer"):
        return stepped(training, step_optimizer)


def gradients(
    training: Training, inputs: Tensor, targets: Tensor, *, rows: int, weight: float | Tensor
) -> Tensor | None:
    """Return this rank's part of the batch's mean loss, with its gradients in place; None where memory ran out."""
    training.optimizer.zero_grad()
    scaler, precision = training.scaler, training.precision

    def forward(piece: Tensor) -> Tensor:
        with training.ranks.section("forward"), precision.context():
            outputs: Tensor = training.forward(piece)
        return outputs.to(targets.dtype)

    ranks, size = training.ranks, training.state.micro_batch.size
    try:
        with ranks.section("backward"):
            loss = ranks.accumulate(
                forward,
                inputs,
                targets,
                size=size,
                weight=weight,
                loss_sum=training.loss_sum,
                context=lambda last: ranks.micro_step(training.forward, last=last),
                scale=scaler.scale if scaler else None,
                pieces=math.ceil(math.ceil(rows / ranks.world_size) / size) if ranks.lockstep else 0,
            )
            if training.guarded:
                reserve(training.optimizer)
            return loss
    except OutOfMemory as error:
        if not ranks.undoes:
            raise lost(training, "RM569", error, f"a piece of {size:,} rows") from error
        if not training.guarded:
            raise
        return None  # after this line the failed step's tensors are gone


def step_optimizer(training: Training) -> None:
    """Take the step; in fp16 an overflow on any rank makes all ranks skip it, and it is counted."""
    scaler, optimizer = training.scaler, training.optimizer
    if scaler is None:
        optimizer.step()
    else:
        scaler.unscale_(optimizer)
        overflows = list(scaler._found_inf_per_device(optimizer).values())
        skipped = any(bool(training.ranks.maximum(found).item()) for found in overflows)
        scaler.step(optimizer)
        scaler.update()
        training.state.skipped += skipped
        if skipped:
            return
    if training.scheduler:
        training.scheduler.step()


def close_epoch(training: Training) -> Epoch:
    """Measure, remember the best weights, and make the state that of the next epoch's beginning."""
    training.watch.epoch_ends()
    state, began = training.state, time.perf_counter()
    losses = training.ranks.sum(state.losses.clone())
    epoch = measured(training, losses, began)
    if epoch.best:
        state.lowest = epoch.validation_loss
        state.best = {name: value.clone() for name, value in training.model.state_dict().items()}
    log_batches(training, losses)
    state.history.append(epoch)
    state.losses.zero_()
    state.epoch, state.batch, state.seconds = epoch.epoch, 0, 0.0
    return epoch


def measured(training: Training, losses: Tensor, began: float) -> Epoch:
    """Return the epoch's figures; the mean loss weighs each batch by its rows, or by what `weigh` found in them."""
    state, sampler = training.state, training.sampler
    sizes = sampler.sizes(state.epoch) if training.weigh is None else state.weights.double().cpu()
    train_loss = ((losses.double().cpu() * sizes).sum() / sizes.sum()).item()
    held_out = training.validation
    how = (training.loss_sum, training.weigh, training.device)
    validation_loss = mean_loss(training.forward, held_out.inputs, held_out.targets, *how)
    require_finite(state.epoch + 1, train_loss, validation_loss)
    seconds = state.seconds + time.perf_counter() - began
    return Epoch(
        epoch=state.epoch + 1,
        train_loss=train_loss,
        validation_loss=validation_loss,
        seconds=seconds,
        rows_per_second=sampler.rows / seconds,
        best=training.keep_last or validation_loss < state.lowest,
        batches=state.chain.head.hex(),
        skipped=state.skipped,
    )


def log_batches(training: Training, losses: Tensor) -> None:
    """Give the keeper the epoch's hash chain and the bits of each batch's loss, big-endian as hex."""
    state = training.state
    links = state.chain.cut()
    if training.keeper and training.ranks.leads:
        line = {"epoch": state.epoch + 1, "first_step": state.step - state.batch + 1, "links": links}
        bits = losses.float().cpu().numpy().astype(">f4").tobytes().hex()
        training.keeper.log(state, line | {"losses": bits, "head": state.chain.head.hex()})


def require_finite(epoch: int, train_loss: float, validation_loss: float) -> None:
    """Raise RM530 where a loss is infinite or not a number."""
    if not (math.isfinite(train_loss) and math.isfinite(validation_loss)):
        raise TrainerError(
            "RM530", what=f"training loss {train_loss}, validation loss {validation_loss}", where=f"epoch {epoch}"
        )
