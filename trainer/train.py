"""The main job: from a file of bars to a run folder with a model, its metadata and its scores."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainer import export
from trainer.accelerator import choose, make_reproducible
from trainer.activations import checkpointed, layers
from trainer.advice import advice_for
from trainer.attention import attend
from trainer.batches import require_rows, rows_at_most, steps_of
from trainer.checkpoint import CheckpointKeeper, finish, newest_good, restore, tell_damaged
from trainer.compilation import compile_if_worth_it
from trainer.config import TrainConfig
from trainer.data.bars import Floats
from trainer.data.dataset import Dataset
from trainer.errors import TrainerError
from trainer.events import emit, progress, say
from trainer.limits import require_memory
from trainer.loop import Plan, StoppedError, Training, fit, new_training
from trainer.losses import CROSS_ENTROPY, SQUARED_ERROR, loss_sum_of, weigh_of
from trainer.memory import allocator_settings, first_size
from trainer.metadata import NOT_FINITE, finite, metadata, model_record
from trainer.model_config import require_fitting
from trainer.models.build import build, size
from trainer.onlookers import watch
from trainer.parallel.join import connect, device_of_rank
from trainer.parallel.start import attempt_of, joined, limits_of, placed, require_alike
from trainer.precision import Precision, choose_precision
from trainer.prepared import Task
from trainer.random_state import seed_all
from trainer.ranks import Ranks
from trainer.resume import (
    longer,
    require_epochs,
    require_same_data,
    rounding_changes,
    settings_of,
    with_settings_of,
    write_settings,
)
from trainer.rows import fed, scaled
from trainer.run_folder import RunFolder, folder_of, most_rows, open_run, record_of, to_resume
from trainer.schedule import schedule_of
from trainer.scoring import as_numbers, score_of
from trainer.state import Epoch
from trainer.step import choose_step
from trainer.stop import stop_on_sigterm
from trainer.summary import summary
from trainer.task import prepare
from trainer.watch import Watch
from trainer.watchdog.guard import guarded


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


def tidied(config: TrainConfig) -> bool:
    """Return whether the run to resume is complete; what a kill just after its end left is removed then.

    So the same command can be started again and again, as schedulers do.
    """
    name = config.run if config.resume == "auto" else config.resume
    if not (config.resume and name and folder_of(config.output, name).final.exists()):
        return False
    folder = folder_of(config.output, name)
    finish(folder.final, config.keep)
    emit("complete", run=name, folder=str(folder.final))
    say(f"resume  run {name} is complete: {folder.final}")
    return True


def tell_nothing_to_resume(config: TrainConfig) -> None:
    """Say that `--resume auto` found no unfinished run and begins one, as a scheduler's first start does."""
    emit("nothing_to_resume", folder=str(config.output), run=config.run)
    named = f" {config.run}" if config.run else ""
    say(f"resume  nothing to resume in {config.output}: begins a new run{named}")


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


def go_on(training: Training, folder: RunFolder, *, fixed_size: bool) -> None:
    """Put `training` where the newest good checkpoint is; without one it begins anew, and says so.

    The micro-batch is the checkpoint's, unless its size is fixed by hand.

    Raises:
        TrainerError: RM551 where more epochs are trained than are asked for.
    """
    ranks = training.ranks
    found = ranks.broadcast(newest_good(folder.checkpoints, tell_damaged) if ranks.leads else None)
    step, tree = found or (0, None)
    if tree is not None:
        restore(training, tree)
        require_epochs(folder.name, asked=training.epochs, trained=training.state.epoch)
        limit = rows_at_most(training)
        before = training.state.micro_batch
        training.state.micro_batch = first_size(None, limit) if fixed_size else before.within(limit)
    if (most := ranks.broadcast(most_rows(folder.partial))) is not None:
        training.most_rows = min(most, training.most_rows or most)
        training.state.micro_batch = first_size(most, training.state.micro_batch.size)
        if ranks.leads:
            emit("out_of_memory_before", most_rows=most)
            say(f"resume  memory ran out before: at most {most:,} rows at a time from here on")
    if ranks.leads:
        emit("resumed", run=folder.name, step=step, epoch=training.state.epoch, from_start=tree is None)
        where = f"goes on after step {step:,}" if tree is not None else "has no good checkpoint and begins anew"
        say(f"resume  run {folder.name} {where}")


def agreed(precision: Precision, ranks: Ranks) -> Precision:
    """Return the format that all ranks compute in: fp32 where their own choices differ."""
    names = ranks.gather(precision.name)
    if len(set(names)) == 1:
        return precision
    return replace(precision, name="fp32", reason=f"the ranks differ: {', '.join(names)}")


def tell_rounding(config: TrainConfig, ranks: Ranks, settings: dict[str, Any] | None) -> None:
    """Say what makes the rest of a resumed run equal to the undisturbed one only up to rounding."""
    changes = rounding_changes(config, ranks.world_size, settings) if settings else []
    if changes:
        emit("rounding_changes", changes=changes)
        say(f"resume  no longer bit for bit: {'; '.join(changes)}")


def fit_with_progress(training: Training) -> list[Epoch]:
    """Train, and report each epoch as a JSON event and on the progress line.

    Raises:
        TrainerError: RM554 where the run was asked to end.
    """
    leads = training.ranks.leads
    with progress(training.epochs) if leads else contextlib.nullcontext() as bar:
        if bar is not None:
            bar.update(training.state.epoch)

        line = ProgressLine(bar=bar, watch=training.watch)
        training.watch.show = line.show

        def report(epoch: Epoch) -> None:
            if bar is None:
                return
            emit("epoch", **asdict(epoch))
            training.watch.epoch_was({"train_loss": epoch.train_loss, "validation_loss": epoch.validation_loss})
            line.losses = f"loss {epoch.train_loss:.3f} train {epoch.validation_loss:.3f} validation"
            line.rate = f"{epoch.rows_per_second:,.0f} rows/s"
            line.show(refresh=False)
            bar.update()

        try:
            return fit(training, report)
        except StoppedError:
            raise TrainerError("RM554", what=f"stopped after step {training.state.step:,}") from None
        finally:
            training.watch.close()
            if training.keeper:
                training.keeper.close()


@dataclass(kw_only=True)
class ProgressLine:
    """What follows the bar: the last epoch's losses, and the latest figures of the telemetry."""

    bar: Any
    watch: Watch
    losses: str = ""
    rate: str = ""

    def show(self, *, refresh: bool = True) -> None:
        """Put the line together anew."""
        figures = (self.watch.telemetry.words() if self.watch.telemetry else "") or self.rate
        if self.bar is not None:
            self.bar.set_postfix_str(", ".join(filter(None, [self.losses, figures])), refresh=refresh)


def best_of(history: list[Epoch]) -> Epoch:
    """Return the epoch whose weights were kept: the last that improved on all before it."""
    return [epoch for epoch in history if epoch.best][-1]


def scores(training: Training, task: Task) -> dict[str, Any]:
    """Return the figures of the trained model on the validation and the test part."""
    parts = {"validation": task.split.validation, "test": task.split.test}
    return {name: score_of(task, part, outputs_for(training, part, task)) for name, part in parts.items()}


@torch.no_grad()
def outputs_for(training: Training, part: Dataset, task: Task) -> Floats:
    """Return the model's raw outputs, shape (rows, outputs)."""
    training.forward.eval()
    rows = scaled(part, task, training.train.targets.dtype)
    return np.concatenate([as_numbers(training.forward(each.inputs.to(training.device))) for each in rows])


def forecast(training: Training, part: Dataset, task: Task) -> Floats:
    """Return the model's forecasts of a number in the target's unit, shape (rows,)."""
    return task.targets.unscale(outputs_for(training, part, task)[:, 0])


def save(
    folder: RunFolder, model: nn.Module, history: list[Epoch], record: dict[str, Any], config: TrainConfig
) -> None:
    """Write the model's files and metrics.jsonl, then metadata.json with the hashes of all."""
    metrics = "".join(json.dumps(epoch.facts()) + "\n" for epoch in history)
    files = {**export.files(model, config, record), "metrics.jsonl": metrics.encode()}
    record["artifacts"] = {name: folder.write(name, content) for name, content in files.items()}
    for log in (folder.partial / "batches.jsonl", folder.partial / "telemetry.jsonl"):
        if log.exists():
            record["artifacts"][log.name] = record_of(log.read_bytes())
    record.update(finite(record))
    gone = [name for name, why in record["absent"].items() if why == NOT_FINITE]
    if gone:
        say(f"null in metadata.json, as the figure is no finite number: {', '.join(gone)}")
    folder.write("metadata.json", (json.dumps(record, indent=2, allow_nan=False) + "\n").encode())


def plain(weights: dict[str, Tensor], precision: Precision, network: dict[str, Any]) -> nn.Module:
    """Return the network with these weights on the CPU, whatever the ranks made of the one they trained."""
    model = build(network).to(dtype=precision.weights)
    model.load_state_dict({name: value.cpu() for name, value in weights.items()})
    return model


def size_estimate(model: nn.Module, epochs: int, steps: int) -> int:
    """Return about how many bytes a run writes: the weights twice, two lines an epoch with all its `steps`, metadata.

    Checkpoints are not counted: a run goes on without them where the disk has no room.
    """
    weights: int = sum(value.numel() * value.element_size() for value in model.parameters())
    return 2 * weights + 400 * epochs + 16 * steps + 64 * 1024
