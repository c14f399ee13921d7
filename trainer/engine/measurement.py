"""Measurements of a run: losses of the batches since the last one, and the loss of the validation part.

A run is measured at the end of each epoch, or each so many steps. Where steps decide, batches of several epochs may
belong to one measurement: an epoch that ends in between leaves its sums in the state.
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor

from trainer.data.loading.batch import call
from trainer.data.loading.placement import TensorPartition
from trainer.engine.state import Epoch, Sums
from trainer.engine.training import Training, changing_state
from trainer.models.losses import mean_loss
from trainer.runtime.errors import TrainerError


def validate_if_due(training: Training) -> None:
    """Measure after a step that --eval-every names, and after the last one; training goes on from there."""
    step, every = training.state.step, training.plan.eval_every
    if every is None or not (step % every == 0 or training.ended):
        return
    with training.ranks.section("evaluation"):
        training.callbacks.on_losses_ready(training)
        epoch = measure(training, training.ranks.sum(training.state.losses.clone()), time.perf_counter())
    training.forward.train()
    training.callbacks.on_validation_end(training, epoch)


def close_epoch(training: Training) -> Epoch | None:
    """Measure where that is due, log the batches, and make the state that of the next epoch's beginning."""
    training.callbacks.on_losses_ready(training)
    state, began = training.state, time.perf_counter()
    losses = training.ranks.sum(state.losses.clone())
    epoch = measure(training, losses, began) if is_due(training) else None
    state.sums = sums_since(training, losses) if epoch is None else Sums()  # of batches that no measurement counted yet
    log_batches(training, losses)
    state.losses.zero_()
    state.epoch, state.batch, state.counted = state.epoch + 1, 0, 0
    return epoch


def is_due(training: Training) -> bool:
    """Return whether the end of an epoch is measured: always, or with --eval-every where it is the run's end."""
    state = training.state
    if training.plan.eval_every is None:
        return True
    last = state.epoch + 1 >= training.epochs or training.ended
    return last and not (state.history and state.history[-1].step == state.step)


def sums_since(training: Training, losses: Tensor) -> Sums:
    """Return the sums over the batches since the last measurement; each batch weighs its rows, or `batch_weight`.

    `losses` (batches of the epoch,) are those of all ranks together.
    """
    state, sampler = training.state, training.sampler
    rows = sampler.sizes(state.epoch)
    part = slice(state.counted, state.batch)
    weights = (rows if training.batch_weight is None else state.weights.double().cpu())[part]
    return Sums(
        loss=state.sums.loss + (losses.double().cpu()[part] * weights).sum().item(),
        weight=state.sums.weight + weights.sum().item(),
        rows=state.sums.rows + int(rows[part].sum().item()),
    )


def measure(training: Training, losses: Tensor, began: float) -> Epoch:
    """Add a measurement to the history, and keep the weights where they are the best so far.

    Args:
        losses: loss of each step since the last measurement, shape (steps,).
        began: start of the interval, in seconds of `time.perf_counter`.
    """
    state = training.state
    epoch = measured(training, losses, began)
    if epoch.best:
        state.lowest = epoch.validation_loss
        state.best = best_of(training)
    state.history.append(epoch)
    state.sums, state.counted, state.seconds = Sums(), state.batch, 0.0
    return epoch


def best_of(training: Training) -> dict[str, Tensor]:
    """Return copies of the weights that change and of the buffers, on the device or, with --best-on host, off it."""
    changing = changing_state(training.model).items()
    if training.plan.best_on_host:
        return {name: value.detach().to("cpu", copy=True) for name, value in changing}
    return {name: value.clone() for name, value in changing}


def measured(training: Training, losses: Tensor, began: float) -> Epoch:
    """Return the figures since the last measurement.

    Args:
        losses: loss of each step since the last measurement, shape (steps,).
        began: start of the interval, in seconds of `time.perf_counter`.
    """
    state = training.state
    sums = sums_since(training, losses)
    train_loss = sums.loss / sums.weight if sums.weight else math.nan
    validation_loss = training.ranks.broadcast(validation_loss_of(training))  # all ranks end after the same step
    require_finite(state.epoch + 1, train_loss, validation_loss)
    seconds = state.seconds + time.perf_counter() - began
    return Epoch(
        epoch=state.epoch + 1,
        train_loss=train_loss,
        validation_loss=validation_loss,
        seconds=seconds,
        rows_per_second=sums.rows / seconds,
        best=training.keep_last or validation_loss < state.lowest,
        batches=state.chain.head.hex(),
        skipped=state.skipped,
        step=state.step if training.plan.eval_every or training.plan.max_steps else None,
    )


def validation_loss_of(training: Training) -> float:
    """Return the mean loss of the validation part.

    Rows of numbers in memory are computed in the weights' precision by every rank. Rows of other tasks are computed
    in the run's precision, a micro-batch at a time, and shared among ranks that can compute alone.
    """
    part = training.validation
    if training.captured is not None:
        training.captured.make_room()
    if isinstance(part, TensorPartition):
        how = (training.loss_sum, training.batch_weight, training.device)
        return mean_loss(training.forward, part.inputs, part.targets, *how)
    return mean_loss_of_rows(training)


@torch.no_grad()
def mean_loss_of_rows(training: Training) -> float:
    """Return the mean loss of a validation part that is fetched by row numbers."""
    part, ranks, device = training.validation, training.ranks, training.device
    training.forward.eval()
    shared = ranks.shares and not ranks.lockstep
    numbers = torch.arange(len(part))[ranks.rank_slice(len(part)) if shared else slice(None)]
    total = torch.zeros(2, dtype=torch.float64, device=device)  # loss and weight: fp64 sums do not depend on the cut
    for piece in numbers.split(training.state.micro_batch.size):
        inputs, targets = part.rows(piece, device)
        with training.precision.context():
            outputs = call(training.forward, inputs)
        total[0] += training.loss_sum(outputs, targets)
        total[1] += len(piece) if training.batch_weight is None else training.batch_weight(targets)
    if shared:
        total = ranks.sum(total)
    loss, weight = total.tolist()
    return loss / weight if weight else math.nan


def log_batches(training: Training, losses: Tensor) -> None:
    """Hand the epoch's hash chain and the bits of each batch's loss, big-endian as hex, to `on_batch_log`."""
    state = training.state
    links = state.chain.cut()
    if training.callbacks.logs_batches() and training.ranks.is_main:
        line = {"epoch": state.epoch + 1, "first_step": state.step - state.batch + 1, "links": links}
        bits = losses[: state.batch].float().cpu().numpy().astype(">f4").tobytes().hex()
        training.callbacks.on_batch_log(training, line | {"losses": bits, "head": state.chain.head.hex()})


def require_finite(epoch: int, train_loss: float, validation_loss: float) -> None:
    """Raise RM530 where a loss is infinite or not a number.

    Args:
        epoch: number of the epoch, from 1, for the message.
        train_loss: mean loss of training.
        validation_loss: mean loss of the validation part.
    """
    if not (math.isfinite(train_loss) and math.isfinite(validation_loss)):
        raise TrainerError(
            "RM530", what=f"training loss {train_loss}, validation loss {validation_loss}", where=f"epoch {epoch}"
        )
