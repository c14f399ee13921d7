"""Checkpoints of a run: taken between steps, written while training continues, verified before they are used."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors
import torch

from trainer.config.checkpoint_policy import Interval, Retention
from trainer.device.rng import draw_state, set_state
from trainer.distributed.collectives import Ranks
from trainer.engine.callbacks.callback import Callback
from trainer.engine.state import TrainState
from trainer.engine.training import Training, changing_state
from trainer.runtime.events import emit, say
from trainer.storage import checkpoint_store as store
from trainer.storage.checkpoint_store import DamagedCheckpointError
from trainer.storage.checkpoint_tree import INDEX, decode
from trainer.storage.run_folder import MOST_ROWS, SETTINGS, note_most_rows
from trainer.storage.serialization import HostMemory

PATIENCE_SECONDS = 0.5  # how long training waits for the checkpoint before; then this one is left out


def capture(training: Training, memory: HostMemory | None = None) -> dict[str, Any] | None:
    """Return all that the next step depends on, on the host, apart from the run; None on ranks that do not write.

    Where the ranks save shards, each has its own parts of the tensors that are spread over them. `memory` is that of
    an earlier capture, which this one overwrites. Collective: each rank's random number generators and losses come
    along.
    """
    ranks, state, memory = training.ranks, training.state, memory or HostMemory()
    losses = ranks.sum(state.losses.clone())
    random = ranks.gather(memory.copy(draw_state(training.device), "random"))
    model = ranks.checkpoint_state(changing_state(training.model))
    best = ranks.checkpoint_state(state.best)
    optimizer = ranks.checkpoint_optimizer(training.optimizer)
    state.losses.copy_(losses) if ranks.is_main else state.losses.zero_()  # rank 0 holds the sums from here on
    if not (ranks.is_main or ranks.saves_shards):
        return None
    return {
        "state": memory.copy(state.as_tree() | {"best": best}, "state"),
        "model": memory.copy(model, "model"),
        "optimizer": memory.copy(optimizer, "optimizer"),
        "scaler": training.scaler.state_dict() if training.scaler else None,
        "scheduler": memory.copy(training.scheduler.state_dict(), "scheduler") if training.scheduler else None,
        "random": random,
    }


def restore(training: Training, tree: dict[str, Any]) -> None:
    """Make `training` stand where `tree` was captured."""
    ranks, device = training.ranks, training.device
    state = TrainState.from_tree(tree["state"])
    state.losses = state.losses.to(device) if ranks.is_main else state.losses.to(device).zero_()
    state.weights = state.weights.to(device)
    held = torch.device("cpu") if training.plan.best_on_host else device
    state.best = {name: value.to(held) for name, value in state.best.items()}
    training.state = state
    ranks.load_model(training.model, {**training.model.state_dict(), **tree["model"]})
    ranks.load_optimizer(training.optimizer, tree["optimizer"])
    if training.scaler and tree["scaler"]:
        training.scaler.load_state_dict(tree["scaler"])
    if training.scheduler and tree["scheduler"]:
        training.scheduler.load_state_dict(tree["scheduler"])
    if ranks.rank < len(tree["random"]):
        set_state(tree["random"][ranks.rank], device)


def newest_good(
    folder: Path,
    damaged: Callable[[Path, str], None],
    own: Callable[[Path, dict[str, Any]], None] = lambda path, facts: None,
    *,
    whole: bool = True,
) -> tuple[int, dict[str, Any]] | None:
    """Return step and content of the newest checkpoint that is whole; each one that is not is reported and left alone.

    `own` is called with the content of its manifest, and may refuse it by an error of its own.

    Args:
        folder: folder of the run's checkpoints.
        damaged: called with each checkpoint that is not whole, and the reason.
        own: called with a checkpoint and the content of its manifest; may raise to refuse it.
        whole: read tensors that ranks have written in parts, too; else they are left on device meta.
    """
    for one in store.stored(folder):
        try:
            files, facts = store.read(one)
            tree = decode(files, described(files.get(INDEX)))
            own(one.path, facts)
            return one.step, assembled(tree, one.path) if whole and INDEX in files else tree
        except DamagedCheckpointError as error:
            damaged(one.path, str(error))
        except (LookupError, ValueError, TypeError, RecursionError, safetensors.SafetensorError) as error:
            damaged(one.path, f"whole, but no state of this trainer ({type(error).__name__})")
    return None


def described(index: bytes | None) -> dict[str, Any]:
    """Return the tensors that a checkpoint's shards hold, on device meta; none without an index.

    Args:
        index: content of the checkpoint's INDEX.
    """
    if index is None:
        return {}
    from trainer.distributed.sharded_checkpoint import save_load  # torch's own part of it takes a second to import

    return save_load.described(index)


def assembled(tree: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the tree with the tensors that ranks have written in parts, whole.

    Args:
        tree: state of the run.
        path: folder of the checkpoint, verified.
    """
    from trainer.distributed.sharded_checkpoint import save_load

    return save_load.filled(tree, path, save_load.whole)


def report_damaged(path: Path, reason: str) -> None:
    """Warn that a checkpoint is not used."""
    emit("checkpoint_damaged", code="RM552", path=str(path), reason=reason)
    say(f"RM552 checkpoint {path} is damaged and not used: {reason}")


class Checkpointer(Callback):
    """Takes checkpoints of one run: the copy to the host stops training, the writing does not."""

    accepts_launches = True

    def __init__(
        self, *, run: Path, interval: Interval, retention: Retention, facts: dict[str, Any] | None = None
    ) -> None:
        self.run, self.folder = run, run / "checkpoints"
        self.interval, self.retention, self.facts = interval, retention, facts or {}
        self.time_before = time.monotonic()
        self.writer: threading.Thread | None = None
        self.memory = HostMemory()
        self.written_at: float | None = None
        self.distrusted: set[int] = set()  # steps of checkpoints that were found damaged: they do not count as kept
        store.sweep(self.folder)

    def checkpoint_due(self, run: Training) -> bool:
        """Return whether the step that now ends completes the interval."""
        if self.interval.steps:
            return (run.state.step + 1) % self.interval.steps == 0
        return 0 < self.interval.seconds <= time.monotonic() - self.time_before

    def on_checkpoint(self, run: Training, *, final: bool = False) -> None:
        """Take a checkpoint; where the one before is still being written, leave this one out and report it."""
        self.time_before = time.monotonic()
        free = self._wait(None if final else PATIENCE_SECONDS) if run.ranks.is_main else True
        if not run.ranks.broadcast(free):
            if run.ranks.is_main:
                emit("checkpoint_left_out", step=run.state.step, reason="the one before is still being written")
            return
        self._wait(None)  # other ranks than the one that was asked: theirs ends with that one's
        tree = capture(run, self.memory)  # nobody reads the one before any more
        if tree is None:
            return
        lowest = run.state.history[-1].validation_loss if run.state.history else None
        arguments = (run.ranks, run.state.step, tree, lowest)
        work = threading.Thread(target=self._write, args=arguments, name="checkpoint", daemon=True)
        self.writer = work
        work.start()
        if final:
            self._wait(None)

    def on_batch_log(self, run: Training, line: dict[str, Any]) -> None:
        """Append a line to the run's batches.jsonl; a full disk is reported, and the run continues."""
        path, state = self.run / "batches.jsonl", run.state
        text = (json.dumps(line) + "\n").encode()
        try:
            with path.open("r+b" if path.exists() else "wb") as stream:
                stream.truncate(state.logged)  # lines after the checkpoint that the run was resumed from
                stream.seek(state.logged)
                stream.write(text)
            state.logged += len(text)
        except OSError as error:
            emit("log_not_written", code="RM553", path=str(path), reason=str(error.strerror))

    def on_out_of_memory(self, run: Training, rows: int) -> None:
        """Record that the next attempt is to compute at most `rows` rows at a time."""
        with contextlib.suppress(OSError):  # then it is as it would be without this word
            note_most_rows(self.run, rows)

    def on_train_end(self, run: Training) -> None:
        """Wait for the checkpoint that is being written."""
        self._wait(None)

    def on_exception(self, run: Training, error: BaseException) -> None:
        """Wait for the checkpoint that is being written; those that are kept stay."""
        self._wait(None)

    def _wait(self, seconds: float | None) -> bool:
        if self.writer is not None:
            self.writer.join(seconds)
        return self.writer is None or not self.writer.is_alive()

    def _write(self, ranks: Ranks, step: int, tree: dict[str, Any], validation_loss: float | None) -> None:
        began = time.monotonic()
        try:
            self._sync_log()
            path = ranks.write_checkpoint(self.folder, step, tree, self.facts | {"validation_loss": validation_loss})
            if path is None:
                return
            self._tidy(step)
        except OSError as error:
            if ranks.is_main:
                reason = error.strerror or str(error)
                emit("checkpoint_failed", code="RM553", step=step, path=str(error.filename or ""), reason=reason)
                say(f"RM553 no checkpoint of step {step}: {reason}; the run continues, the last valid one is kept")
            return
        self.written_at = time.monotonic()
        with contextlib.suppress(OSError):  # where nobody reads any more, the training itself reports it
            emit("checkpoint", step=step, path=str(path), seconds=round(self.written_at - began, 3))

    def _tidy(self, step: int) -> None:
        """Remove what the policy does not keep, which is never the one of `step`, just written.

        Later steps than this are of an attempt that was not resumed: a damaged one among them must not pass for
        the newest.
        """
        self.distrusted.discard(step)
        found = losses_of(self.folder)
        aside = {other for other, _ in found if other > step} | self.distrusted
        kept = self.retention.kept(one for one in found if one[0] not in aside)
        remove_all_but(self.folder, kept | aside | {step})

    def _sync_log(self) -> None:
        """Bring the lines that a checkpoint counts to the disk before the checkpoint."""
        path = self.run / "batches.jsonl"
        if path.exists():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())


def finish(run: Path, retention: Retention) -> None:
    """Remove from a complete run what only a resume needs; checkpoints kept by best and every stay."""
    folder = run / "checkpoints"
    stay = retention.lasting(losses_of(folder))
    remove_all_but(folder, stay)
    if not stay:
        shutil.rmtree(folder, ignore_errors=True)
    for name in (SETTINGS, MOST_ROWS):
        (run / name).unlink(missing_ok=True)


def losses_of(folder: Path) -> list[tuple[int, float]]:
    """Return step and validation loss of each checkpoint; one from before the first measurement has infinity."""
    found = ((one.step, facts.get("validation_loss")) for one, facts in store.facts_of(folder))
    return [
        (step, loss if isinstance(loss, float | int) and not math.isnan(loss) else float("inf")) for step, loss in found
    ]


def remove_all_but(folder: Path, steps: set[int]) -> None:
    """Remove the other checkpoints."""
    for one in store.stored(folder):
        if one.step not in steps:
            shutil.rmtree(one.path, ignore_errors=True)
