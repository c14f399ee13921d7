"""Change of the batch size between epochs: what is adapted in a run, and what stays."""

from __future__ import annotations

from dataclasses import replace

from trainer.config.batch_schedule import CONSTANT, BatchSchedule
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit


def require_rows(schedule: BatchSchedule, rows: int) -> None:
    """Raise RM500 where a batch of `schedule` would have more rows than the training part's `rows`."""
    for since, size in schedule.changes:
        if size > rows:
            what = f"--batch-schedule {since}:{size}: the training part has {rows:,} rows"
            raise TrainerError("RM500", what=what, next=f"{since}:{rows} is all rows in one batch.")


def apply_batch_size(training: Training) -> None:
    """Make the state fit an epoch that begins, where its batches have another size.

    Where memory ran out, the rows at a time stay what they were; they grow again as they always do. The watchdog
    learns anew how long a step may take.
    """
    state, sampler = training.state, training.sampler
    size, count = sampler.size(state.epoch), sampler.count(state.epoch)
    if state.epoch == 0 or size == sampler.size(state.epoch - 1):
        return
    state.losses, state.weights = (each.new_zeros(count) for each in (state.losses, state.weights))
    state.micro_batch = state.micro_batch.within(rows_at_most(training))
    if training.ranks.heartbeat:
        training.ranks.heartbeat.forget()
    if training.ranks.is_main:
        emit("batch_size", epoch=state.epoch + 1, rows=size, batches=count)


def rows_at_most(training: Training) -> int:
    """Return how many rows a rank computes at a time where memory is enough, in the epoch where the run stands."""
    sampler = training.sampler
    share = -(-min(sampler.size(training.state.epoch), sampler.rows) // training.ranks.world_size)
    return min(training.most_rows or share, share)


def at_size(training: Training, size: int) -> Training:
    """Return `training` as it is in epochs with batches of `size`: the same weights, optimizer and rows."""
    sampler = training.sampler
    if sampler.schedule.changes:
        sampler = replace(sampler, batch_size=size, schedule=CONSTANT)
        view = replace(training, sampler=sampler)
        view.state = replace(training.state, micro_batch=training.state.micro_batch.within(rows_at_most(view)))
        return view
    return training
