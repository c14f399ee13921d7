"""Phase 2: a run at its beginning, or where an unfinished one stopped: its record, its settings, its state."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from trainer.config.train import TrainConfig
from trainer.device.memory import allocator_settings
from trainer.device.rng import seed_all
from trainer.distributed.collectives import Ranks
from trainer.engine.callbacks.callback import Callback
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.callbacks.rank_allocation import allocation_of
from trainer.engine.lr_schedule import schedule_of, shape_of
from trainer.engine.training import Training, new_training
from trainer.run.artifacts import evaluation_of
from trainer.run.checkpoint_writer import Checkpointer
from trainer.run.metadata import metadata
from trainer.run.phases.attempt import Attempt
from trainer.run.phases.network import names_of
from trainer.run.phases.prepare import Prepared
from trainer.run.plan import plan_of
from trainer.run.repeated_faults.remedy import Treatment, killed_from_outside
from trainer.run.resume_callbacks import hashes_of, report_changed_callbacks
from trainer.run.resume_point import (
    report_rounding,
    restore_latest_checkpoint,
)
from trainer.run.resume_settings import (
    CHOICES,
    START,
    longer,
    rank_choices,
    recorded_choice,
    settings_of,
    write_settings,
)
from trainer.run.same_run import origin_of
from trainer.runtime.events import emit, say
from trainer.storage.run_folder import RunFolder
from trainer.tasks.task import LearningTask, Partitions, Placement


def begin_record(prepared: Prepared, attempt: Attempt, folder: RunFolder, ranks: Ranks) -> dict[str, Any]:
    """Return metadata.json's content as far as it is known before the first step, and report it."""
    entries = prepared.task.describe(prepared.network)
    record = metadata(folder.name, attempt.config, entries, prepared.accelerator)
    record["precision"] = {"name": prepared.precision.name, "reason": prepared.precision.reason}
    record["attention"] = prepared.attention.facts() if prepared.attention else None
    if prepared.fast is not None:
        record["fast"] = prepared.fast
    if prepared.start is not None:
        record["micro_batch"] = prepared.start.facts()
    if prepared.gates.verdicts:
        record["gates"] = prepared.gates.facts()
    if prepared.shared_memory is not None:
        record["shared_memory"] = prepared.shared_memory
    if attempt.treatment.remedies:
        record["remedies"] = attempt.treatment.facts()
    record["allocator"] = allocator_settings(os.environ)
    if choices := rank_choices(attempt.config, attempt.settings):
        record["rank_choice"] = recorded_choice(choices)
    if prepared.callbacks:
        record["callbacks"] = [each.facts() for each in prepared.callbacks]
    if ranks.is_main:
        reported = ("run", "task", "data", "split", "device", "precision", "allocator", "callbacks", "seed", "threads")
        emit("start", **{name: record[name] for name in reported if name in record})
        report_treatment(attempt.treatment)
        report_shared_memory(prepared.shared_memory)
        report_rounding(attempt.config, ranks, attempt.settings)
        report_changed_callbacks(attempt.settings, record)
    return record


def report_shared_memory(shared: dict[str, Any] | None) -> None:
    """Report how much memory is used of what a card shares with the host, where it has none of its own.

    Args:
        shared: see `limit_shared_memory`.
    """
    if shared is not None:
        emit("shared_memory", **shared)
        say(f"memory  {shared['limit'] / 2**30:,.1f} GiB of {shared['pool']} at most: {shared['why']}")


def report_treatment(treatment: Treatment) -> None:
    """Report what is done about faults, where anything is."""
    if treatment.remedies:
        emit("remedies", **treatment.facts())
        names = " and ".join(treatment.names)
        say(f"faults  {treatment.reason}: trains with {names}; results are equal up to rounding")
    if sentence := killed_from_outside(treatment):
        emit("notice", what=sentence)
        say(f"faults  {sentence}")


def assemble(prepared: Prepared, attempt: Attempt, folder: RunFolder, ranks: Ranks, record: dict[str, Any]) -> Training:
    """Return the run at its beginning, its settings written.

    Args:
        record: content of metadata.json so far.
    """
    started = started_with(prepared, attempt, ranks, record)
    if ranks.is_main and not attempt.settings:
        write_settings(folder, started)
    return training_of(prepared, attempt.config, ranks, checkpointer_of(attempt.config, folder, started))


def present(prepared: Prepared, attempt: Attempt, ranks: Ranks, record: dict[str, Any]) -> dict[str, Any]:
    """Return what a run that begins now is started with.

    Args:
        record: content of metadata.json so far.
    """
    settings = settings_of(attempt.config, prepared.task.data_sha256, world_size=ranks.world_size)
    planned = {START: prepared.start.facts()} if prepared.start else {}
    return settings | origin_of(record) | hashes_of(record) | planned


def started_with(prepared: Prepared, attempt: Attempt, ranks: Ranks, record: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the run was started with; a resume changes its length alone.

    Args:
        record: content of metadata.json so far.
    """
    started = longer(attempt.settings, attempt.config) or present(prepared, attempt, ranks, record)
    attention = {"attention": prepared.attention.kernel if prepared.attention else None}
    choices = rank_choices(attempt.config, attempt.settings)
    more = ({"fast": names_of(prepared.fast)} if prepared.fast is not None else {}) | (
        {CHOICES: choices} if choices else {}
    )
    return {**started, **attention, **more}


def resume_if_requested(
    training: Training, prepared: Prepared, attempt: Attempt, folder: RunFolder, record: dict[str, Any]
) -> None:
    """Restore `training` from the unfinished run's newest valid checkpoint.

    Args:
        record: content of metadata.json so far.

    Raises:
        TrainerError: RM551 where more is trained than is asked for, and what `restore_latest_checkpoint` raises.
    """
    if not attempt.name:
        return
    ranks = training.ranks
    started, now = (each(prepared, attempt, ranks, record) for each in (started_with, present))
    # a planned size is where the run began, and no bound that a person set: what a checkpoint cut stays cut
    by_hand = prepared.start is None and attempt.config.compute.micro_batch is not None
    restore_latest_checkpoint(training, folder, started, now, fixed_size=by_hand)
    if ranks.is_main:
        # only now: where it refused to go on, the run stays as it was
        write_settings(folder, started)


def training_of(prepared: Prepared, config: TrainConfig, ranks: Ranks, checkpointer: Callback) -> Training:
    """Return the run at its beginning."""
    task, device = prepared.task, torch.device(prepared.accelerator.device)
    if ranks.rank:  # the weights were drawn alike; from here on ranks draw for their own rows
        seed_all(config.loop.seed + ranks.rank)
    rows = partitions_of(prepared, config, device)
    if ranks.is_main:
        emit("feed", name=rows.feed, reason=rows.reason, workers=rows.workers)
    own, votes = [*allocation_of(prepared.model, ranks), checkpointer], bool(config.telemetry.callback)
    callbacks = Callbacks(own, users=prepared.callbacks, votes=votes)
    training = new_training(
        prepared.model,
        rows.train,
        rows.validation,
        plan_of(config),
        precision=prepared.precision,
        ranks=ranks,
        device=device,
        loader_workers=rows.workers,
        callbacks=callbacks,
        loss_sum=task.loss(),
        batch_weight=task.batch_weight(),
        keep_last=config.loop.weights == "last",
    )
    precompute(training, task, rows)
    for group in training.optimizer.param_groups:
        group["weight_decay"] = config.optimizer.weight_decay
    training.scheduler = schedule_of(shape_of(config.optimizer, training.steps), training.optimizer)
    return training


def precompute(training: Training, task: LearningTask, rows: Partitions) -> None:
    """Give `training` its rows with what the task computes of them once, and report how long that took.

    Args:
        rows: rows that it was made with.
    """
    began = time.perf_counter()
    made = task.precomputed(rows, evaluation_of(training))
    training.train, training.validation = made.train, made.validation
    if made is not rows and training.ranks.is_main:
        count = len(made.train) + len(made.validation)
        say(f"cached  what stays the same of {count:,} rows, in {time.perf_counter() - began:.1f} s")


def partitions_of(prepared: Prepared, config: TrainConfig, device: torch.device) -> Partitions:
    """Return the rows to train and to validate on, held where the settings place them.

    Args:
        device: device that computes.
    """
    placement = Placement(
        device=device,
        dtype=prepared.precision.weights,
        feed=config.compute.feed,
        workers=config.compute.loader_workers,
        folder=config.run.output,
    )
    return prepared.task.partitions(placement)


def checkpointer_of(config: TrainConfig, folder: RunFolder, settings: dict[str, Any]) -> Checkpointer:
    """Return the callback that keeps the run's checkpoints, each with the run's settings.

    Args:
        settings: content of run.json.
    """
    return Checkpointer(
        run=folder.partial,
        interval=config.run.checkpoint_every,
        retention=config.run.keep,
        facts={"settings": settings},
    )
