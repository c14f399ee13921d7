"""The main job: from a file of bars to a run folder with a model, its metadata and its scores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from trainer.config.model import require_fitting
from trainer.config.train import TrainConfig
from trainer.device.accelerator import choose, make_reproducible
from trainer.device.capacity import require_memory
from trainer.device.memory import allocator_settings
from trainer.device.precision import Precision, choose_precision
from trainer.device.rng import seed_all
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import connect, device_of_rank
from trainer.distributed.watchdog.guard import guarded
from trainer.engine.batch_size_change import require_rows, steps_of
from trainer.engine.instrumentation import watch
from trainer.engine.loop import Plan, Training, new_training
from trainer.engine.lr_schedule import schedule_of
from trainer.engine.progress import fit_with_progress
from trainer.engine.steps.attention_selection import attend
from trainer.engine.steps.batch_size_probe import advice_for
from trainer.engine.steps.compile import compile_if_worth_it
from trainer.engine.steps.step_strategy import choose_step
from trainer.models.activation_checkpointing import checkpointed, layers
from trainer.models.build import build, size
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR, loss_sum_of, weigh_of
from trainer.run.artifacts import best_of, plain, save, scores, size_estimate
from trainer.run.checkpointing import CheckpointKeeper, finish
from trainer.run.metadata import metadata, model_record
from trainer.run.rank_setup import attempt_of, joined, limits_of, placed, require_alike
from trainer.run.resume_point import go_on, tell_nothing_to_resume, tell_rounding, tidied
from trainer.run.resume_settings import longer, require_same_data, settings_of, with_settings_of, write_settings
from trainer.run.summary import summary
from trainer.runtime.events import emit, say
from trainer.runtime.signals import stop_on_sigterm
from trainer.storage.run_folder import RunFolder, folder_of, open_run, to_resume
from trainer.tasks.bars import prepare
from trainer.tasks.scaling import fed
from trainer.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where and how a rank computes."""

    device: str
    precision: Precision
    ranks: Ranks


def train(config: TrainConfig) -> None:
    """Run the job, alone or as one rank of several; the run folder appears only if all of it succeeds.

    Raises:
        TrainerError: for everything the user can put right; RM554 where the run was asked to end.
        OSError: where a file cannot be written.
    """
    ranks = connect()
    try:
        config = attempt_of(config, ranks)
        if ranks.lead(lambda: tidied(config)):
            return
        name = ranks.lead(lambda: to_resume(config.output, config.resume, config.run) if config.resume else None)
        if config.resume and not name and ranks.leads:
            tell_nothing_to_resume(config)
        settings = ranks.lead(lambda: folder_of(config.output, name).settings()) if name else None
        run(with_settings_of(config, name, settings) if name and settings else config, name, settings, ranks)
    finally:
        ranks.close()


def run(config: TrainConfig, name: str | None, settings: dict[str, Any] | None, lobby: Ranks) -> None:
    """Train under `config`; `name` is the unfinished run to go on with, `settings` what it was started with."""
    require_fitting(config)
    task = prepare(config)
    require_rows(config.batch_schedule, len(task.split.train))
    make_reproducible(seed=config.seed, threads=config.threads)
    require_alike(lobby, config, task.file.sha256)
    accelerator = choose(device_of_rank(config.device))
    precision = agreed(choose_precision(config.precision, accelerator), lobby)
    network = model_record(config, task)
    if config.parallel == "ddp" or lobby.world_size == 1:  # otherwise no card holds the whole
        require_room(network, accelerator.device, precision)
    model = placed(build(network).to(dtype=precision.weights), accelerator.device, config, lobby)
    how: dict[str, Any] = {"device": accelerator.device, "precision": precision, "ranks": lobby}
    attention = attend(model, network, config, **how, before=(settings or {}).get("attention"))
    checkpointed(model, config.activation_checkpointing, layers(model))
    if settings and name:
        require_same_data(task.file, name, settings)
    needed = size_estimate(model, config.epochs, steps_of(config, len(task.split.train)))
    with (
        open_on(lobby, config, name, need_bytes=needed) as folder,
        stop_on_sigterm() as stop,
        guarded(folder.partial / "watchdog", limits=limits_of(config)) as beats,
        joined(lobby, accelerator.device, config, beats) as ranks,
    ):
        record = metadata(folder.name, config, task, accelerator)
        record["precision"] = {"name": precision.name, "reason": precision.reason}
        record["attention"] = attention.facts() if attention else None
        record["allocator"] = allocator_settings(os.environ)
        if ranks.leads:
            told = ("run", "data", "split", "device", "precision", "allocator", "seed", "threads")
            emit("start", **{name: record[name] for name in told})
            tell_rounding(config, ranks, settings)
        started = longer(settings, config) or settings_of(config, task.file, world_size=ranks.world_size)
        started = {**started, "attention": attention.kernel if attention else None}
        if ranks.leads and not settings:
            write_settings(folder, started)
        place = Place(device=accelerator.device, precision=precision, ranks=ranks)
        training = training_of(model, task, config, place, keeper_of(config, folder, started))
        training.stop = stop
        if name:
            go_on(training, folder, fixed_size=config.micro_batch is not None)
            if ranks.leads:
                write_settings(folder, started)  # only now: where it refused to go on, the run stays as it was
        compile_if_worth_it(training, config)
        paced(training, config)
        training.watch = watch(training, config, folder, accelerator, network | {"class_weights": task.class_weights})
        history = fit_with_progress(training)
        record["metrics"] = {"best": best_of(history).facts(), **scores(training, task)}
        whole = ranks.whole(dict(model.state_dict()))
        if ranks.leads:
            save(folder, plain(whole, precision, network), history, record, config)
    if lobby.leads:
        finish(folder.final, config.keep)
        emit("done", run=folder.name, folder=str(folder.final), **record["metrics"])
        say(summary(record, history, folder.final))


def require_room(network: dict[str, Any], device: str, precision: Precision) -> None:
    """Raise RM521 where the network that `network` describes cannot be trained on `device` at all."""
    count = (lambda widths: size({**network, "widths": widths})) if network["kind"] == "transformer" else None
    require_memory(network["widths"], device, bytes_each=precision.weights.itemsize, count=count)


@contextlib.contextmanager
def open_on(ranks: Ranks, config: TrainConfig, name: str | None, *, need_bytes: int) -> Iterator[RunFolder]:
    """Open the run's folder on rank 0 for all ranks."""
    with contextlib.ExitStack() as stack:

        def enter() -> str:
            opened = open_run(config.output, name or config.run, need_bytes=need_bytes, resume=name is not None)
            return stack.enter_context(opened).name

        yield folder_of(config.output, ranks.lead(enter))
        ranks.barrier()


def training_of(model: nn.Module, task: Task, config: TrainConfig, place: Place, keeper: CheckpointKeeper) -> Training:
    """Return the run at its beginning."""
    precision, ranks = place.precision, place.ranks
    like = torch.empty(0, dtype=precision.weights, device=place.device)
    if ranks.rank:
        seed_all(config.seed + ranks.rank)  # the weights were drawn alike; from here on ranks draw for their own rows
    plan = Plan(
        epochs=config.epochs,
        batch_size=config.batch_size,
        batch_schedule=config.batch_schedule,
        learning_rate=config.learning_rate,
        seed=config.seed,
        micro_batch=config.micro_batch,
    )
    rows, held_out, feed = fed(task, config, like=like)
    if ranks.leads:
        emit("feed", **vars(feed))
    training = new_training(
        model,
        rows,
        held_out,
        plan,
        precision=precision,
        ranks=ranks,
        device=torch.device(place.device),
        loader_workers=feed.workers,
        keeper=keeper,
        loss_sum=loss_sum_of(CROSS_ENTROPY if task.labels else SQUARED_ERROR, task.class_weights),
        weigh=weigh_of(task.class_weights),
        keep_last=config.weights == "last",
    )
    for group in training.optimizer.param_groups:
        group["weight_decay"] = config.weight_decay
    training.scheduler = schedule_of(config.schedule, training.optimizer, training.sampler.steps(config.epochs))
    return training


def paced(training: Training, config: TrainConfig) -> None:
    """Choose how steps are taken, say why, and at a run's beginning what a larger batch would gain."""
    choice = choose_step(config.step, training)
    if training.ranks.leads:
        emit("step", **vars(choice))
        say(f"step    {choice.name}: {choice.reason}")
    advice = advice_for(training, choice) if training.state.step == 0 else None
    if advice:
        emit("advice", **vars(advice))
        say(f"advice  {advice.words()}")


def keeper_of(config: TrainConfig, folder: RunFolder, settings: dict[str, Any]) -> CheckpointKeeper:
    """Return who keeps the run's checkpoints; each of them knows the run's settings."""
    return CheckpointKeeper(
        run=folder.partial,
        interval=config.checkpoint_every,
        retention=config.keep,
        facts={"settings": settings},
    )


def agreed(precision: Precision, ranks: Ranks) -> Precision:
    """Return the format that all ranks compute in: fp32 where their own choices differ."""
    names = ranks.gather(precision.name)
    if len(set(names)) == 1:
        return precision
    return replace(precision, name="fp32", reason=f"the ranks differ: {', '.join(names)}")
