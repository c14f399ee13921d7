"""The main job: from a data file to a run folder with a model, its metadata and its scores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from trainer.config.recipe import as_recipe
from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.run import RunConfig
from trainer.config.setting import shown
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator, choose, make_reproducible
from trainer.device.capacity import require_memory
from trainer.device.memory import allocator_settings
from trainer.device.precision import Precision, choose_precision
from trainer.device.rng import seed_all
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import connect, device_of_rank
from trainer.distributed.watchdog.guard import guarded
from trainer.engine.batch_size_change import require_rows, steps_of
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.callbacks.user_callback import UserCallback, load_all
from trainer.engine.instrumentation import callbacks_of
from trainer.engine.loop import fit
from trainer.engine.lr_schedule import require_schedule, schedule_of, shape_of
from trainer.engine.state import Epoch
from trainer.engine.steps.attention_selection import Chosen, attend
from trainer.engine.steps.batch_size_probe import suggest_batch_size
from trainer.engine.steps.compile import compile_if_worth_it
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import StoppedError, Training, new_training
from trainer.models.activation_checkpointing import checkpointed, layers
from trainer.run.artifacts import best_of, lasted, plain, save, scores, size_estimate
from trainer.run.checkpoint_writer import CheckpointKeeper
from trainer.run.checkpoint_writer import finish as remove_leftovers
from trainer.run.metadata import metadata
from trainer.run.plan import attention_asked, plan_of, rows_tried
from trainer.run.rank_setup import attempt_of, joined, limits_of, placed, require_alike, require_best_on
from trainer.run.resume_callbacks import hashes_of, report_changed_callbacks
from trainer.run.resume_point import (
    finalize_if_complete,
    restore_latest_checkpoint,
    tell_nothing_to_resume,
    tell_rounding,
)
from trainer.run.resume_settings import (
    checked,
    given,
    longer,
    require_same_data,
    settings_of,
    with_settings_of,
    write_settings,
)
from trainer.run.same_run import origin_of
from trainer.run.summary import summary
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.runtime.signals import stop_on_sigterm
from trainer.storage.run_folder import RunFolder, folder_of, open_run, to_resume
from trainer.tasks.choose import task_of
from trainer.tasks.task import Computing, LearningTask, NetworkSpec, Placement


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What a process is asked to train: `name` is the unfinished run to resume, `settings` what it was started with."""

    config: TrainConfig
    name: str | None
    settings: dict[str, Any] | None
    lobby: Ranks


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run before its folder is opened: data read, device and precision chosen, network built."""

    task: LearningTask
    network: NetworkSpec
    accelerator: Accelerator
    precision: Precision
    model: nn.Module
    attention: Chosen | None
    fast: dict[str, Any] | None
    callbacks: tuple[UserCallback, ...] = ()


def train(config: TrainConfig) -> None:
    """Run the job, alone or as one rank of several; the run folder appears only if all of it succeeds.

    Raises:
        TrainerError: for everything the user can put right; RM554 where the run was asked to end.
        OSError: where a file cannot be written.
    """
    ranks = connect()
    try:
        config = attempt_of(config, ranks)
        if ranks.lead(lambda: finalize_if_complete(config.run)):
            return
        asked = config.run
        name = ranks.lead(lambda: to_resume(asked.output, asked.resume, asked.run) if asked.resume else None)
        if asked.resume and not name and ranks.leads:
            tell_nothing_to_resume(asked)
        settings = ranks.lead(lambda: folder_of(asked.output, name).settings(checked)) if name else None
        config = with_settings_of(config, name, settings) if name and settings else config
        run(Attempt(config=config, name=name, settings=settings, lobby=ranks))
    finally:
        ranks.close()


def run(attempt: Attempt) -> None:
    """Train in four phases: prepare, assemble, resume if asked to, finish."""
    task, attempt = read(attempt)
    config, lobby = attempt.config, attempt.lobby
    prepared = prepare(attempt, task)
    needed = size_estimate(prepared.model, config.loop.epochs, steps_of(config.loop, prepared.task.train_rows))
    with (
        open_on(lobby, config.run, attempt.name, need_bytes=needed) as folder,
        stop_on_sigterm() as stop,
        guarded(folder.partial / "watchdog", limits=limits_of(config.distributed)) as beats,
        joined(lobby, prepared.accelerator.device, config.distributed, beats) as ranks,
    ):
        record = begin_record(prepared, attempt, folder, ranks)
        training = assemble(prepared, attempt, folder, ranks, record)
        training.stop = stop
        resume_if_asked(training, prepared, attempt, folder, record)
        history = trained(training, prepared, attempt, folder)
        finish(training, prepared, attempt, folder, record, history)
    if lobby.leads:
        complete(prepared.task, attempt, folder, record, history)


def read(attempt: Attempt) -> tuple[LearningTask, Attempt]:
    """Read the data, and return the task with the settings that it decides where a run begins and they were not given.

    Raises:
        TrainerError: where data or settings do not allow the run.
    """
    config = attempt.config
    config.model.require_fitting(config.unused())
    task = task_of(config, shown=attempt.lobby.leads)
    if attempt.name:
        return task, attempt
    chosen = task.defaults(config.loop, given(config))
    if chosen and attempt.lobby.leads:
        say(f"chosen for {task.train_rows:,} training rows: {worded(chosen)}")
    return task, replace(attempt, config=config.having(**chosen))


def worded(settings: Mapping[str, Any]) -> str:
    """Return settings as flags."""
    return ", ".join(f"--{name.replace('_', '-')} {shown(value)}" for name, value in settings.items())


def prepare(attempt: Attempt, task: LearningTask) -> Prepared:
    """Choose device and precision, and build the network; nothing is written yet.

    Raises:
        TrainerError: where data, settings or device do not allow the run.
    """
    config, lobby = attempt.config, attempt.lobby
    users = load_all(config.telemetry.callback, leads=lobby.leads, world_size=lobby.world_size)
    require_rows(config.loop.batch_schedule, task.train_rows)
    require_schedule(config.optimizer, steps_of(config.loop, task.train_rows))
    make_reproducible(seed=config.loop.seed, threads=config.compute.threads, deterministic=not results_may_vary(config))
    require_alike(lobby, config, task.data_sha256)
    accelerator = choose(device_of_rank(config.compute.device))
    require_best_on(config, accelerator.device, lobby)
    precision = agreed(choose_precision(config.compute.precision, accelerator), lobby)
    network = task.network()
    if config.distributed.parallel == "ddp" or lobby.world_size == 1:  # otherwise no card holds the whole
        require_room(network, accelerator.device, precision, config)
    model, attention, fast = built(network, attempt, accelerator.device, precision)
    if attempt.settings and attempt.name:
        require_same_data(task, attempt.name, attempt.settings)
    return Prepared(
        task=task,
        network=network,
        accelerator=accelerator,
        precision=precision,
        model=model,
        attention=attention,
        fast=fast,
        callbacks=users,
    )


def results_may_vary(config: TrainConfig) -> bool:
    """Return whether kernels are allowed whose results differ from run to run."""
    return isinstance(config.model, DecoderConfig) and config.model.fast == "nondeterministic"


def built(
    network: NetworkSpec, attempt: Attempt, device: str, precision: Precision
) -> tuple[nn.Module, Chosen | None, dict[str, Any] | None]:
    """Return the network with its first weights where it is to be, its attention kernel, and its faster ways.

    Args:
        device: name of this rank's device, such as "cuda:0".
    """
    config, lobby = attempt.config, attempt.lobby
    model = network.build().to(dtype=precision.weights)
    if network.load:
        network.load(model)
    computing = computing_of(attempt, device, precision)
    if network.tune:
        network.tune.hold(model, computing)
    model = placed(model, device, config.distributed, lobby)
    before = (attempt.settings or {}).get("attention")
    attention = attend(
        model,
        network.attention,
        attention_asked(config),
        rows=rows_tried(config),
        device=device,
        precision=precision,
        ranks=lobby,
        before=before,
    )
    fast = tuned(network, model, computing, lobby)
    checkpointed(model, config.compute.activation_checkpointing, layers(model))
    return model, attention, fast


def computing_of(attempt: Attempt, device: str, precision: Precision) -> Computing:
    """Return how the network is to be computed; an unfinished run keeps its choices.

    Args:
        device: torch's name of the device, such as cuda:0 or cpu.
    """
    config = attempt.config
    return Computing(
        device=device,
        precision=precision,
        rows=rows_tried(config),
        checkpointing=config.compute.activation_checkpointing,
        parallel=config.distributed.parallel,
        before=(attempt.settings or {}).get("fast"),
    )


def tuned(network: NetworkSpec, model: nn.Module, computing: Computing, lobby: Ranks) -> dict[str, Any] | None:
    """Have the network use faster ways; the other ranks use those that rank 0 chose. A collective.

    Return each part's choice, for the metadata; None where the network has no faster ways.

    Args:
        model: the network on its device, changed in place.
    """
    if network.tune is None:
        return None
    found = network.tune.use(model, computing) if lobby.leads else None
    if lobby.world_size > 1:
        names = lobby.broadcast(names_of(found))
        found = found or network.tune.use(model, replace(computing, before=names))
    if lobby.leads and found:
        emit("fast", **found)
        for part, choice in found.items():
            say(f"fast    {part}: {choice['name']}: {choice['why']}")
    return found


def names_of(fast: dict[str, Any] | None) -> dict[str, str] | None:
    """Return the name of each part's choice."""
    return None if fast is None else {part: choice["name"] for part, choice in fast.items()}


def begin_record(prepared: Prepared, attempt: Attempt, folder: RunFolder, ranks: Ranks) -> dict[str, Any]:
    """Return metadata.json's content as far as it is known before the first step, and report it."""
    entries = prepared.task.describe(prepared.network)
    record = metadata(folder.name, attempt.config, entries, prepared.accelerator)
    record["precision"] = {"name": prepared.precision.name, "reason": prepared.precision.reason}
    record["attention"] = prepared.attention.facts() if prepared.attention else None
    if prepared.fast is not None:
        record["fast"] = prepared.fast
    record["allocator"] = allocator_settings(os.environ)
    if prepared.callbacks:
        record["callbacks"] = [each.facts() for each in prepared.callbacks]
    if ranks.leads:
        reported = ("run", "task", "data", "split", "device", "precision", "allocator", "callbacks", "seed", "threads")
        emit("start", **{name: record[name] for name in reported if name in record})
        tell_rounding(attempt.config, ranks, attempt.settings)
        report_changed_callbacks(attempt.settings, record)
    return record


def assemble(prepared: Prepared, attempt: Attempt, folder: RunFolder, ranks: Ranks, record: dict[str, Any]) -> Training:
    """Return the run at its beginning, its settings written.

    Args:
        record: content of metadata.json so far.
    """
    started = started_with(prepared, attempt, ranks, record)
    if ranks.leads and not attempt.settings:
        write_settings(folder, started)
    return training_of(prepared, attempt.config, ranks, keeper_of(attempt.config, folder, started))


def present(prepared: Prepared, attempt: Attempt, ranks: Ranks, record: dict[str, Any]) -> dict[str, Any]:
    """Return what a run that begins now is started with.

    Args:
        record: content of metadata.json so far.
    """
    settings = settings_of(attempt.config, prepared.task.data_sha256, world_size=ranks.world_size)
    return settings | origin_of(record) | hashes_of(record)


def started_with(prepared: Prepared, attempt: Attempt, ranks: Ranks, record: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the run was started with; a resume changes its length alone.

    Args:
        record: content of metadata.json so far.
    """
    started = longer(attempt.settings, attempt.config) or present(prepared, attempt, ranks, record)
    attention = {"attention": prepared.attention.kernel if prepared.attention else None}
    return {**started, **attention} | ({"fast": names_of(prepared.fast)} if prepared.fast is not None else {})


def resume_if_asked(
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
    restore_latest_checkpoint(training, folder, started, now, fixed_size=attempt.config.compute.micro_batch is not None)
    if ranks.leads:
        # only now: where it refused to go on, the run stays as it was
        write_settings(folder, started)


def trained(training: Training, prepared: Prepared, attempt: Attempt, folder: RunFolder) -> list[Epoch]:
    """Choose how steps are taken, take them, and return the measurements; the best weights are in place.

    Raises:
        TrainerError: RM554 where the run was asked to end, and what `fit` raises.
    """
    config = attempt.config
    compile_if_worth_it(training, config.compute.compile, config.distributed.parallel)
    select_step_strategy(training, config.compute.step)
    architecture = prepared.network.description | prepared.task.replay_settings()
    own = callbacks_of(training, config.telemetry, folder, prepared.accelerator, architecture, config.as_dict())
    training.callbacks = training.callbacks.after(*own)
    try:
        return fit(training)
    except StoppedError:
        raise TrainerError("RM554", what=f"stopped after step {training.state.step:,}") from None


def finish(
    training: Training,
    prepared: Prepared,
    attempt: Attempt,
    folder: RunFolder,
    record: dict[str, Any],
    history: list[Epoch],
) -> None:
    """Measure the trained network and write its files.

    Args:
        record: content of metadata.json so far; completed here.
        history: measurements in order.
    """
    task, ranks = prepared.task, training.ranks
    record["metrics"] = {"best": best_of(history).facts(), **scores(training, task)}
    whole = ranks.whole(dict(prepared.model.state_dict()))
    if ranks.leads:
        model = plain(whole, prepared.precision, prepared.network)
        files = task.files(model, record, attempt.config.run.export)
        save(folder, files | {"recipe.yaml": as_recipe(attempt.config).encode()}, history, record)


def complete(
    task: LearningTask, attempt: Attempt, folder: RunFolder, record: dict[str, Any], history: list[Epoch]
) -> None:
    """Remove what only a resume needs, and report the end; the folder has its final name.

    Args:
        record: content of metadata.json.
        history: measurements in order.
    """
    remove_leftovers(folder.final, attempt.config.run.keep)
    emit("done", run=folder.name, folder=str(folder.final), **record["metrics"])
    say(summary(record, task.summary(record, lasted(history)), folder.final))


def require_room(network: NetworkSpec, device: str, precision: Precision, config: TrainConfig) -> None:
    """Raise RM521 where the network cannot be trained on `device` at all.

    Args:
        device: name of this rank's device, such as "cuda:0".
    """
    require_memory(
        network.parameters(),
        device,
        bytes_each=precision.weights.itemsize,
        best_on_host=config.loop.best_on == "host",
        remedy=network.remedy,
    )


@contextlib.contextmanager
def open_on(ranks: Ranks, config: RunConfig, name: str | None, *, need_bytes: int) -> Iterator[RunFolder]:
    """Open the run's folder on rank 0 for all ranks.

    Args:
        name: name of an unfinished run to resume; None for a new one.
        need_bytes: free space that the run needs.
    """
    with contextlib.ExitStack() as stack:

        def enter() -> str:
            opened = open_run(config.output, name or config.run, need_bytes=need_bytes, resume=name is not None)
            return stack.enter_context(opened).name

        yield folder_of(config.output, ranks.lead(enter))
        ranks.barrier()


def training_of(prepared: Prepared, config: TrainConfig, ranks: Ranks, keeper: CheckpointKeeper) -> Training:
    """Return the run at its beginning."""
    task, device = prepared.task, torch.device(prepared.accelerator.device)
    if ranks.rank:
        seed_all(
            config.loop.seed + ranks.rank
        )  # the weights were drawn alike; from here on ranks draw for their own rows
    rows = task.partitions(
        Placement(
            device=device,
            dtype=prepared.precision.weights,
            feed=config.compute.feed,
            workers=config.compute.loader_workers,
            folder=config.run.output,
        )
    )
    if ranks.leads:
        emit("feed", name=rows.feed, reason=rows.reason, workers=rows.workers)
    training = new_training(
        prepared.model,
        rows.train,
        rows.validation,
        plan_of(config),
        precision=prepared.precision,
        ranks=ranks,
        device=device,
        loader_workers=rows.workers,
        callbacks=Callbacks([keeper], users=prepared.callbacks, votes=bool(config.telemetry.callback)),
        loss_sum=task.loss(),
        weigh=task.weigh(),
        keep_last=config.loop.weights == "last",
    )
    for group in training.optimizer.param_groups:
        group["weight_decay"] = config.optimizer.weight_decay
    training.scheduler = schedule_of(shape_of(config.optimizer, training.steps), training.optimizer)
    return training


def select_step_strategy(training: Training, requested: str) -> None:
    """Choose how steps are taken, say why, and at a run's beginning what a larger batch would gain."""
    choice = choose_step(requested, training)
    if training.ranks.leads:
        emit("step", **vars(choice))
        say(f"step    {choice.name}: {choice.reason}")
    advice = suggest_batch_size(training, choice) if training.state.step == 0 else None
    if advice:
        emit("advice", **vars(advice))
        say(f"advice  {advice.words()}")


def keeper_of(config: TrainConfig, folder: RunFolder, settings: dict[str, Any]) -> CheckpointKeeper:
    """Return who keeps the run's checkpoints; each of them knows the run's settings.

    Args:
        settings: content of run.json.
    """
    return CheckpointKeeper(
        run=folder.partial,
        interval=config.run.checkpoint_every,
        retention=config.run.keep,
        facts={"settings": settings},
    )


def agreed(precision: Precision, ranks: Ranks) -> Precision:
    """Return the format that all ranks compute in: fp32 where their own choices differ."""
    names = ranks.gather(precision.name)
    if len(set(names)) == 1:
        return precision
    return replace(precision, name="fp32", reason=f"the ranks differ: {', '.join(names)}")
