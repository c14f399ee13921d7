"""The training loop, top to bottom: batch, forward, backward, clip, optimizer step, log, validate, checkpoint.

`fit` is the run, `run_epoch` an epoch, `train_step` one optimizer step with autograd. Where `training.launches` is set
(`engine/steps`: a CUDA graph, or kernels without autograd), it takes the whole batches of an epoch several at a time,
in the same way to the bit, and `train_step` takes the rest. `loss.backward()` is called for each micro-batch in
`distributed/gradient_accumulation.accumulate`, the loss is estimated on validation rows in `engine/measurement`, the
learning rate is in `engine/lr_schedule`, and checkpoints are written by `run/checkpoint_writer`. All that a step
depends on is in `Training`; `TrainState` is where the run stands. It can be interrupted between two steps only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from torch import Tensor, where

from trainer.data.loading.batch import Values, call
from trainer.data.loading.placement import batches
from trainer.device.memory import OutOfMemory, StepSnapshot, may_grow, reserve
from trainer.engine.batch_size_change import apply_batch_size
from trainer.engine.callbacks.callback import TakenSteps
from trainer.engine.measurement import close_epoch, validate_if_due
from trainer.engine.oom_recovery import cut_smaller, grow_back, step_or_rollback, unrecoverable_oom
from trainer.engine.state import Epoch
from trainer.engine.training import StoppedError, Training


def fit(training: Training) -> list[Epoch]:
    """Train from the current state to the end, load the best weights, and return all measurements.

    The best weights are those of the lowest validation loss, or with `keep_last` the last ones.

    Raises:
        TrainerError: RM530 as soon as a loss is not finite, RM523 where one row is too much for the memory, RM733 and
            RM734 from a user's callback.
        StoppedError: when the run was asked to end; `on_checkpoint` was called before.
    """
    state, callbacks = training.state, training.callbacks
    try:
        callbacks.on_train_begin(training)
        agree_on_stop(training)
        while not training.ended:
            run_epoch(training)
            if state.batch == training.sampler.count(state.epoch):
                end_epoch(training)
        if state.batch:  # the last step was taken within an epoch
            end_epoch(training)
        training.ranks.load_model(training.model, {**training.model.state_dict(), **state.best})
        callbacks.on_train_end(training)
    except BaseException as error:
        callbacks.on_exception(training, error)
        raise
    return state.history


def run_epoch(training: Training) -> None:
    """Take one optimizer step for each batch left in the epoch, until the epoch or the run ends.

    Where a step is followed by a measurement and a checkpoint, the measurement comes first, so a resumed run has both.
    """
    state, callbacks = training.state, training.callbacks
    training.forward.train()
    if state.batch == 0:
        apply_batch_size(training)
    callbacks.on_epoch_begin(training)
    began = time.perf_counter()
    for taken, stop, checkpoint_due in steps(training):
        callbacks.on_step_end(training, taken)
        now = time.perf_counter()
        state.seconds, began = state.seconds + now - began, now
        if training.plan.eval_every is not None:
            validate_if_due(training)
        agree_on_stop(training)
        if stop or checkpoint_due:
            with training.ranks.section("checkpoint"):
                callbacks.on_checkpoint(training, final=stop)
        if stop:
            raise StoppedError
        if training.ended:
            return


def end_epoch(training: Training) -> None:
    """Measure the losses where that is due, log the epoch's batches, and move to the next epoch."""
    with training.ranks.section("evaluation"):
        measured = close_epoch(training)
    if measured is not None:
        training.callbacks.on_validation_end(training, measured)
    training.callbacks.on_epoch_end(training)
    agree_on_stop(training)


def agree_on_stop(training: Training) -> None:
    """End the run on all ranks where a callback on any rank set `should_stop`; only users' callbacks cost a vote."""
    if training.callbacks.votes or training.ranks.world_size == 1:
        (requested,) = training.ranks.any_rank(training.should_stop)
        training.stop_agreed = training.stop_agreed or requested


def steps(training: Training) -> Iterator[tuple[TakenSteps, bool, bool]]:
    """Take the steps left in the epoch; yield each, whether to stop, and whether a checkpoint is due."""
    if training.launches is not None:
        yield from training.launches(training)
    for rows, inputs, targets in get_batches(training):
        yield train_step(training, rows, inputs, targets)


def get_batches(training: Training) -> Iterator[tuple[Tensor, Any, Any]]:
    """Yield each batch left in this epoch: its row numbers over all ranks, and this rank's inputs and targets."""
    state, ranks, waiting = training.state, training.ranks, training.callbacks.waiting
    source = batches(
        training.train,
        training.sampler,
        epoch=state.epoch,
        start=state.batch,
        rank_slice=ranks.rank_slice,
        device=training.device,
        workers=training.loader_workers,
    )
    while True:
        with waiting("data"), ranks.section("data"):
            batch = next(source, None)
        if batch is None:
            return
        yield batch


def train_step(training: Training, rows: Tensor, inputs: Values, targets: Values) -> tuple[TakenSteps, bool, bool]:
    """Train on one batch with autograd; return the step, whether to stop, and whether a checkpoint is due.

    Where memory runs out, all ranks roll the step back and take it again with a smaller micro-batch.

    Args:
        rows: row numbers of the batch over all ranks, shape (rows,).
        inputs: this rank's rows, first dimension rows.
        targets: targets of the same rows.
    """
    state, ranks, callbacks = training.state, training.ranks, training.callbacks
    callbacks.on_step_begin(training)
    weight = weight_of(training, targets, len(rows))
    while True:
        snapshot = StepSnapshot.of(training.model, training.device) if training.guarded else None
        loss = forward_backward(training, inputs, targets, rows=len(rows), weight=weight)
        due = ranks.is_main and callbacks.checkpoint_due(training)
        out_of_memory, stop, due = ranks.any_rank(loss is None, training.stop.requested, due)
        if loss is not None and not out_of_memory:
            sum_over_ranks(training)
            if optimize(training):
                break
        cut_smaller(training, snapshot)
    state.losses.select(0, state.batch).copy_(loss)  # an index in brackets costs three times as much
    state.chain.add(rows)
    state.batch, state.step = state.batch + 1, state.step + 1
    if state.micro_batch.count() and not any(ranks.any_rank(not may_grow(training.device))):
        grow_back(training)
    return TakenSteps(state.step, [rows], loss.reshape(1)), stop, due


def weight_of(training: Training, targets: Values, rows: int) -> float | Tensor:
    """Return the weight of a batch over all ranks: its rows, or the sum of what `batch_weight` finds in them.

    Args:
        targets: this rank's targets, first dimension rows.
        rows: rows of the batch over all ranks.
    """
    if training.batch_weight is None:
        return rows
    weight = training.batch_weight(targets)
    if training.ranks.shares:  # asked of the world, not of this batch: of a last row alone one rank has all rows
        weight = training.ranks.sum(weight)
    training.state.weights[training.state.batch] = weight
    return where(weight > 0, weight, 1)  # a batch of nothing but padding has no gradient


def forward_backward(
    training: Training, inputs: Values, targets: Values, *, rows: int, weight: float | Tensor
) -> Tensor | None:
    """Return this rank's part of the batch's mean loss, with its gradients in place; None where memory ran out.

    The gradients are accumulated over micro-batches of `state.micro_batch.size` rows.

    Args:
        inputs: this rank's rows, first dimension rows.
        targets: targets of the same rows.
        rows: rows of the batch over all ranks.
        weight: weight of the batch over all ranks.
    """
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
                **({} if training.captured is None else {"replay": training.captured}),
            )
            if training.guarded:
                reserve(training.optimizer)
            return loss
    except OutOfMemory as error:
        if not ranks.undoes:
            raise unrecoverable_oom(training, "RM569", error, f"a piece of {size:,} rows") from error
        if not training.guarded:
            raise
        return None  # after this line the failed step's tensors are gone


def sum_over_ranks(training: Training) -> None:
    """Make each rank's gradients the sum over all, and its buffers those of rank 0."""
    ranks = training.ranks
    if ranks.world_size > 1:
        with training.callbacks.waiting("comms"):
            ranks.sum_gradients(list(training.model.parameters()))
            ranks.share_buffers(training.model)


def optimize(training: Training) -> bool:
    """Take the optimizer's step; return False where memory ran out before it changed anything."""
    with training.ranks.section("optimizer"):
        return step_or_rollback(training, lambda run: step_optimizer(run, run.callbacks.on_gradients))


def step_optimizer(training: Training, on_gradients: Any = None) -> None:
    """Clip the gradients, step the optimizer, then the learning rate.

    In fp16 an overflow on any rank makes all ranks skip the step, and it is counted.
    """
    scaler, optimizer = training.scaler, training.optimizer
    skipped = False
    if scaler is not None:
        scaler.unscale_(optimizer)
        overflows = list(scaler._found_inf_per_device(optimizer).values())
        skipped = any(bool(training.ranks.maximum(found).item()) for found in overflows)
        training.state.skipped += skipped
    if on_gradients is not None:
        on_gradients(training)
    clip_gradients(training)
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    if training.scheduler and not skipped:
        training.scheduler.step()


def clip_gradients(training: Training) -> None:
    """Scale all gradients down together where their norm is above the limit; the host does not wait for the norm."""
    limit = training.plan.clip_norm
    if limit is None:
        return
    weights = [weight for weight in training.model.parameters() if weight.grad is not None]
    norm = training.ranks.gradient_norm(weights)
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    for weight in weights:
        assert weight.grad is not None
        weight.grad.mul_(factor.to(weight.grad.device))
