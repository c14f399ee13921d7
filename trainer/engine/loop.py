"""The training loop, top to bottom. Everything a step depends on is in `Training`, and `TrainState` says where it is.

The data are on the device before it starts, and it waits for the device once an epoch. Where it can be
interrupted, it is between two steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, where

from trainer.data.loading.batch import Values, call
from trainer.data.loading.placement import Part as Part  # noqa: PLC0414 -- others take these from here
from trainer.data.loading.placement import batches
from trainer.device.memory import OutOfMemory, Undo, may_grow, reserve
from trainer.engine.batch_size_change import change_batches
from trainer.engine.measurement import close_epoch as close_epoch  # noqa: PLC0414
from trainer.engine.measurement import measure_if_due
from trainer.engine.oom_recovery import cut_smaller, grow_back, lost, stepped
from trainer.engine.state import Epoch
from trainer.engine.training import Plan as Plan  # noqa: PLC0414
from trainer.engine.training import StoppedError, Training
from trainer.engine.training import new_training as new_training  # noqa: PLC0414


def fit(training: Training, on_epoch: Callable[[Epoch], None]) -> list[Epoch]:
    """Train on from where the state is, leave the best weights, return all measurements: one an epoch, or as asked.

    The best are those of the lowest validation loss, or with `keep_last` the last.

    Raises:
        TrainerError: RM530 as soon as a loss is not finite, RM523 where one row is too much for the memory.
        StoppedError: when the run was asked to end; a checkpoint was taken where there is a keeper.
    """
    state = training.state
    while not training.ended:
        run_epoch(training, on_epoch)
        if state.batch == training.sampler.count(state.epoch):
            end_epoch(training, on_epoch)
    if state.batch:  # the last step was taken within an epoch
        end_epoch(training, on_epoch)
    training.ranks.load_model(training.model, {**training.model.state_dict(), **state.best})
    return state.history


def end_epoch(training: Training, on_epoch: Callable[[Epoch], None]) -> None:
    """Close the epoch and report its measurement, if there is one."""
    with training.ranks.section("evaluation"):
        epoch = close_epoch(training)
    if epoch is not None:
        on_epoch(epoch)


def run_epoch(training: Training, on_epoch: Callable[[Epoch], None] = lambda epoch: None) -> None:
    """Take one optimizer step for each batch of the epoch that is still to come, or until the run ends.

    A step after which the loss is measured is measured before its checkpoint is taken, so a resumed run has both.
    """
    state, keeper = training.state, training.keeper
    training.forward.train()
    if state.batch == 0:
        change_batches(training)
    began = time.perf_counter()
    for stop, due in steps(training):
        now = time.perf_counter()
        state.seconds, began = state.seconds + now - began, now
        if training.eval_every is not None:
            measure_if_due(training, on_epoch)
        if keeper and (stop or due):
            with training.ranks.section("checkpoint"):
                keeper.keep(training, final=stop)
        if stop:
            raise StoppedError
        if training.ended:
            return


def steps(training: Training) -> Iterator[tuple[bool, bool]]:
    """Take the steps of the epoch that are still to come; after each launch, yield whether to stop and what is due."""
    if training.launches is not None:
        yield from training.launches(training)
    for rows, inputs, targets in training.watch.timed(share_of_batches(training)):
        yield take_step(training, rows, inputs, targets)


def share_of_batches(training: Training) -> Iterator[tuple[Tensor, Any, Any]]:
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


def weight_of(training: Training, targets: Values, rows: int) -> float | Tensor:
    """Return the weight of a batch over all ranks: its rows, or the sum of what `weigh` finds in them."""
    if training.weigh is None:
        return rows
    weight = training.weigh(targets)
    if training.ranks.shares:  # asked of the world, not of this batch: of a last row alone one rank has all rows
        weight = training.ranks.sum(weight)
    training.state.weights[training.state.batch] = weight
    return where(weight > 0, weight, 1)  # a batch of nothing but padding has no gradient


def take_step(training: Training, rows: Tensor, inputs: Values, targets: Values) -> tuple[bool, bool]:
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
    training: Training, inputs: Values, targets: Values, *, rows: int, weight: float | Tensor
) -> Tensor | None:
    """Return this rank's part of the batch's mean loss, with its gradients in place; None where memory ran out."""
    training.optimizer.zero_grad()
    scaler, precision = training.scaler, training.precision

    def forward(piece: Values) -> Any:
        with training.ranks.section("forward"), precision.context():
            return call(training.forward, piece)

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
                dtype=training.state.losses.dtype,
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
        clip_gradients(training)
        optimizer.step()
    else:
        scaler.unscale_(optimizer)
        overflows = list(scaler._found_inf_per_device(optimizer).values())
        skipped = any(bool(training.ranks.maximum(found).item()) for found in overflows)
        clip_gradients(training)
        scaler.step(optimizer)
        scaler.update()
        training.state.skipped += skipped
        if skipped:
            return
    if training.scheduler:
        training.scheduler.step()


def clip_gradients(training: Training) -> None:
    """Scale all gradients down together where their norm is above the limit; the host does not wait for the norm."""
    if training.clip_norm is None:
        return
    weights = [weight for weight in training.model.parameters() if weight.grad is not None]
    norm = training.ranks.gradient_norm(weights)
    factor = (training.clip_norm / (norm + 1e-6)).clamp(max=1.0)
    for weight in weights:
        assert weight.grad is not None
        weight.grad.mul_(factor.to(weight.grad.device))
