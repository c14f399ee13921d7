"""Phase 1, before a run's folder is opened: read the data, choose device and precision, build the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from trainer.config.choices import WHOLE
from trainer.config.setting import shown
from trainer.config.train import TrainConfig
from trainer.data.loading.sampler import steps_of
from trainer.device.accelerator import Accelerator, choose, make_reproducible, unused_cards
from trainer.device.capacity import limit_shared_memory
from trainer.device.precision import Precision, choose_precision
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import device_of_rank
from trainer.engine.batch_size_change import require_rows
from trainer.engine.callbacks.user_callback import UserCallback, load_all
from trainer.engine.lr_schedule import require_schedule
from trainer.engine.optimizer import require_optimizer
from trainer.engine.steps.attention_selection import Chosen
from trainer.run.gates.decide import Gates, may_vary, pass_gates, treated_by
from trainer.run.gates.subject import PRECISION
from trainer.run.memory_plan.start_size import StartSize, start_size, step_settings
from trainer.run.phases.attempt import Attempt
from trainer.run.phases.network import built, held_dense, require_room
from trainer.run.rank_setup import require_alike, require_best_on
from trainer.run.repeated_faults.remedy import LADDER, against_narrow_products, apply
from trainer.run.resume_settings import (
    given,
    planned_before,
    require_same_data,
)
from trainer.runtime.events import emit, say
from trainer.tasks.choose import task_of
from trainer.tasks.task import LearningTask, NetworkSpec


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run before its folder is opened: data read, device and precision chosen, network built.

    attempt: with the micro-batch that was planned, `start`.
    """

    attempt: Attempt
    start: StartSize | None = None
    task: LearningTask
    network: NetworkSpec
    accelerator: Accelerator
    precision: Precision
    model: nn.Module
    attention: Chosen | None
    fast: dict[str, Any] | None
    callbacks: tuple[UserCallback, ...] = ()
    gates: Gates = field(default_factory=Gates)
    shared_memory: dict[str, Any] | None = None


def read(attempt: Attempt) -> tuple[LearningTask, Attempt]:
    """Read the data, and return the task with the settings that it decides where a run begins and they were not given.

    Raises:
        TrainerError: where data or settings do not allow the run.
    """
    config = attempt.config
    config.model.require_fitting(config.unused())
    task = task_of(config, shown=attempt.bootstrap.is_main)
    if attempt.name:
        return task, attempt
    chosen = task.defaults(config.loop, given(config))
    if chosen and attempt.bootstrap.is_main:
        say(f"chosen for {task.train_rows:,} training rows: {as_flags(chosen)}")
    return task, replace(attempt, config=config.having(**chosen))


def as_flags(settings: Mapping[str, Any]) -> str:
    """Return settings as flags."""
    return ", ".join(f"--{name.replace('_', '-')} {shown(value)}" for name, value in settings.items())


def prepare(attempt: Attempt, task: LearningTask) -> Prepared:
    """Choose device and precision, and build the network; nothing is written yet.

    Raises:
        TrainerError: where data, settings or device do not allow the run.
    """
    bootstrap = attempt.bootstrap
    users = load_all(attempt.config.telemetry.callback, is_main=bootstrap.is_main, world_size=bootstrap.world_size)
    require_settings(attempt, task)
    accelerator = chosen_device(attempt, task)
    attempt = treated(attempt, accelerator)
    require_best_on(attempt.config, accelerator.device, bootstrap)
    network = task.network()
    gates, attempt = gated(attempt, network, accelerator)
    shared = limit_shared_memory(accelerator.device) if accelerator.kind == "rocm" else None
    precision = chosen_precision(attempt, gates, accelerator)
    if attempt.config.distributed.parallel in WHOLE or bootstrap.world_size == 1:  # otherwise no card holds the whole
        require_room(network, accelerator.device, precision, attempt.config)
    start = planned_start(held_dense(network, gates), attempt, task.train_rows, accelerator, precision)
    if start and start.rows:
        attempt = replace(attempt, config=attempt.config.having(micro_batch=start.rows))
    model, attention, fast = built(network, attempt, accelerator.device, precision, gates)
    if attempt.settings and attempt.name:
        require_same_data(task, attempt.name, attempt.settings)
    return Prepared(
        attempt=attempt,
        start=start,
        task=task,
        network=network,
        accelerator=accelerator,
        precision=precision,
        model=model,
        attention=attention,
        fast=fast,
        callbacks=users,
        gates=gates,
        shared_memory=shared,
    )


def require_settings(attempt: Attempt, task: LearningTask) -> None:
    """Raise RM500, RM526 or RM529 where settings do not fit the rows or the number of ranks."""
    config = attempt.config
    require_rows(config.loop.batch_schedule, task.train_rows)
    require_optimizer(config.optimizer.optimizer, config.distributed.parallel, attempt.bootstrap.world_size)
    require_schedule(config.optimizer, steps_of(config.loop, task.train_rows))


def chosen_device(attempt: Attempt, task: LearningTask) -> Accelerator:
    """Return this rank's device, with seeds and threads set. Raises RM565 where ranks differ in what they train."""
    config, bootstrap = attempt.config, attempt.bootstrap
    make_reproducible(seed=config.loop.seed, threads=config.compute.threads, deterministic=not may_vary(config))
    require_alike(bootstrap, config, task.data_sha256)
    accelerator = choose(device_of_rank(config.compute.device))
    if bootstrap.world_size == 1 and (sentence := unused_cards(accelerator)):
        say(sentence)
        emit("notice", what=sentence)
    return accelerator


def gated(attempt: Attempt, network: NetworkSpec, accelerator: Accelerator) -> tuple[Gates, Attempt]:
    """Return the outcome of the gates, and the attempt with what it changes, which is in use from here on."""
    gates = pass_gates(attempt.config, network.planned, accelerator, attempt.treatment, attempt.bootstrap)
    attempt = replace(attempt, treatment=treated_by(gates, attempt.treatment))
    apply(attempt.treatment)
    return gates, attempt


def chosen_precision(attempt: Attempt, gates: Gates, accelerator: Accelerator) -> Precision:
    """Return the number format of all ranks."""
    requested, fault = attempt.config.compute.precision, gates.fault(PRECISION)
    return agreed(choose_precision(requested, accelerator, fault=fault), attempt.bootstrap)


def treated(attempt: Attempt, accelerator: Accelerator) -> Attempt:
    """Return the attempt with what is done about faults, which is in use from here on.

    Args:
        accelerator: where the run computes.
    """
    treatment = against_narrow_products(attempt.treatment, attempt.config, accelerator)
    apply(treatment)
    config = attempt.config
    if treatment.remedies == len(LADDER) and config.compute.step == "auto":
        config = config.having(step="eager")  # steps are captured in torch's cache of memory
    return replace(attempt, config=config, treatment=treatment)


def planned_start(
    network: NetworkSpec, attempt: Attempt, rows: int, accelerator: Accelerator, precision: Precision
) -> StartSize | None:
    """Return the micro-batch that a run of --micro-batch auto starts with; None where nothing is planned.

    A resumed run has the plan that it began with. A collective for a new one: rank 0 plans, for cards that it takes to
    be alike.

    Args:
        rows: training rows.
    """
    config, bootstrap = attempt.config, attempt.bootstrap
    if network.planned is None or not plannable(config, accelerator):
        return None
    if attempt.name:
        return planned_before(attempt.settings)
    share = -(-min(config.loop.batch_size, rows) // bootstrap.world_size)
    how = step_settings(config)
    found: StartSize | None = None
    if bootstrap.is_main:
        found = start_size(network.planned, rows=share, accelerator=accelerator, precision=precision.name, how=how)
        emit("micro_batch", **found.facts())
        say(f"rows    {found.rows or share:,} at a time: {found.why}")
    facts = bootstrap.broadcast(found and found.facts())
    return StartSize(**facts)


def plannable(config: TrainConfig, accelerator: Accelerator) -> bool:
    """Return whether a micro-batch is to be planned: none is given, and a card holds the whole model."""
    on_card = accelerator.device.startswith("cuda") and config.distributed.parallel == "ddp"
    return on_card and config.compute.micro_batch is None


def agreed(precision: Precision, ranks: Ranks) -> Precision:
    """Return the format that all ranks compute in: fp32 where their own choices differ."""
    names = ranks.gather(precision.name)
    if len(set(names)) == 1:
        return precision
    return replace(precision, name="fp32", reason=f"the ranks differ: {', '.join(names)}")
