"""From an unfinished run to where its newest good checkpoint is, and what is said about it."""

from __future__ import annotations

from typing import Any

from trainer.config.train import TrainConfig
from trainer.device.memory import first_size
from trainer.distributed.collectives import Ranks
from trainer.engine.batch_size_change import rows_at_most
from trainer.engine.training import Training
from trainer.run.checkpointing import finish, newest_good, restore, tell_damaged
from trainer.run.resume_settings import require_epochs, require_steps, rounding_changes
from trainer.runtime.events import emit, say
from trainer.storage.run_folder import RunFolder, folder_of, most_rows


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
        require_steps(folder.name, asked=training.max_steps, taken=training.state.step)
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


def tell_rounding(config: TrainConfig, ranks: Ranks, settings: dict[str, Any] | None) -> None:
    """Say what makes the rest of a resumed run equal to the undisturbed one only up to rounding."""
    changes = rounding_changes(config, ranks.world_size, settings) if settings else []
    if changes:
        emit("rounding_changes", changes=changes)
        say(f"resume  no longer bit for bit: {'; '.join(changes)}")
