"""Restore an unfinished run from its newest valid checkpoint and report the outcome."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from trainer.config.sections.run import RunConfig
from trainer.config.train import TrainConfig
from trainer.device.memory import first_size
from trainer.distributed.collectives import Ranks
from trainer.engine.batch_size_change import rows_at_most
from trainer.engine.training import Training, changing_state
from trainer.run.checkpoint_writer import Checkpointer, finish, newest_good, report_damaged, restore
from trainer.run.resume_settings import fixed_under, require_epochs, require_steps, rounding_changes
from trainer.run.same_run import require_own, require_same_inputs
from trainer.runtime.events import emit, say
from trainer.storage.checkpoint_store import path_of
from trainer.storage.run_folder import RunFolder, folder_of, most_rows
from trainer.storage.untrusted_files import read_from


def finalize_if_complete(config: RunConfig) -> bool:
    """Return whether the run to resume is complete; what a kill just after its end left is removed then.

    So the same command can be started again and again, as schedulers do.
    """
    name = config.run if config.resume == "auto" else config.resume
    if not (config.resume and name and folder_of(config.output, name).final.exists()):
        return False
    folder = folder_of(config.output, name)
    finish(folder.final, config.keep)
    emit("complete", run=name, folder=str(folder.final))
    say(f"resume  run {name} is complete, and is not trained further: {folder.final}")
    return True


def report_nothing_to_resume(config: RunConfig) -> None:
    """Report that `--resume auto` found no unfinished run and begins one, as a scheduler's first start does."""
    emit("nothing_to_resume", folder=str(config.output), run=config.run)
    named = f" {config.run}" if config.run else ""
    say(f"resume  nothing to resume in {config.output}: begins a new run{named}")


def restore_latest_checkpoint(
    training: Training, folder: RunFolder, settings: dict[str, Any], now: dict[str, Any], *, fixed_size: bool
) -> None:
    """Restore `training` from the newest valid checkpoint; without one, start anew and report it.

    The micro-batch is the checkpoint's, unless its size is fixed by hand.

    Args:
        settings: content of run.json.
        now: record of the present attempt.
        fixed_size: `--micro-batch` is a number.

    Raises:
        TrainerError: RM551 where more epochs are trained than are asked for, RM591 where the checkpoint is of another
            run than the one that was started with `settings`, RM593 where `now` has other inputs than that, RM594
            where the checkpoint holds no state of this training.
    """
    require_same_inputs(folder.name, settings.get("inputs"), now["inputs"])
    ranks = training.ranks
    found = ranks.run_on_main(lambda: _newest(training, folder, settings))
    step, tree = found or (0, None)
    if tree is not None:
        with read_from(folder.checkpoints, f"the checkpoint of step {step:,}", code="RM594"):
            require_state(tree, training, step)
            path = path_of(folder.checkpoints, step)
            restore(training, ranks.read_shards(tree, path, training.model, training.optimizer))
        require_epochs(folder.name, requested=training.epochs, trained=training.state.epoch)
        require_steps(folder.name, requested=training.plan.max_steps, taken=training.state.step)
        limit = rows_at_most(training)
        before = training.state.micro_batch
        training.state.micro_batch = first_size(None, limit) if fixed_size else before.within(limit)
    if (most := ranks.broadcast(most_rows(folder.partial))) is not None:
        training.most_rows = min(most, training.most_rows or most)
        training.state.micro_batch = first_size(most, training.state.micro_batch.size)
        if ranks.is_main:
            emit("out_of_memory_before", most_rows=most)
            say(f"resume  memory ran out before: at most {most:,} rows at a time from here on")
    if ranks.is_main:
        emit("resumed", run=folder.name, step=step, epoch=training.state.epoch, from_start=tree is None)
        where = (
            f"resumes after step {step:,}"
            if tree is not None
            else "has no valid checkpoint and starts from the beginning"
        )
        say(f"resume  run {folder.name} {where}")


def _newest(training: Training, folder: RunFolder, settings: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    def damaged(path: Path, reason: str) -> None:
        report_damaged(path, reason)
        if checkpointer := training.callbacks.find(Checkpointer):
            checkpointer.distrusted.add(int(path.name.rpartition("-")[2]))

    fixed = fixed_under(settings["config"])
    own = partial(require_own, own=settings, fixed=fixed)
    return newest_good(folder.checkpoints, damaged, own, whole=not training.ranks.saves_shards)


def require_state(tree: Any, training: Training, step: int) -> None:
    """Raise ValueError or TypeError where a checkpoint's tree is no state that `training` can go on from.

    Args:
        tree: content of the checkpoint.
        step: number of the checkpoint's step.
    """
    state, losses = tree["state"], training.state.losses
    counts = {name: state[name] for name in ("step", "epoch", "batch", "skipped", "logged")}
    counts |= {f"micro_batch.{name}": state["micro_batch"][name] for name in ("limit", "size")}
    for name, count in counts.items():
        if type(count) is not int or count < (1 if name.startswith("micro") else 0):
            raise ValueError(f"{name} is {count!r}")
    measured = len(state["history"])
    if state["step"] != step or (training.plan.eval_every is None and measured != state["epoch"]):
        raise ValueError(f"its state is of step {state['step']}, epoch {state['epoch']} and {measured} measurements")
    if not isinstance(state["losses"], Tensor) or state["losses"].dtype != losses.dtype:
        raise TypeError("losses are no tensor of this run")
    here = {name: value.shape for name, value in changing_state(training.model).items()}  # whole, also of a shard
    for part in (tree["model"], state["best"] or tree["model"]):
        if {name: value.shape for name, value in part.items()} != here:
            raise ValueError("its weights are those of another network")


def report_rounding(config: TrainConfig, ranks: Ranks, settings: dict[str, Any] | None) -> None:
    """Report what makes the rest of a resumed run equal to the undisturbed one only up to rounding.

    Args:
        settings: content of run.json; None for a new run.
    """
    changes = rounding_changes(config, ranks.world_size, settings) if settings else []
    if changes:
        emit("rounding_changes", changes=changes)
        say(f"resume  results will not be bit-identical to the original run: {'; '.join(changes)}")
