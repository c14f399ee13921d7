"""Out-of-memory recovery: roll the step back and retry with a smaller micro-batch, or fail so that a restart does."""

from __future__ import annotations

from collections.abc import Callable

from trainer.device.memory import OptimizerUnchanged, OutOfMemory, StepSnapshot, report, require_divisible
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit


def step_or_rollback(training: Training, step: Callable[[Training], None]) -> bool:
    """Take the optimizer's `step`; return False where memory ran out before it changed anything: it can be undone.

    Raises:
        TrainerError: RM559 where weights are changed in part, or on other ranks.
    """
    if not training.guarded:
        step(training)
        return True
    before, scaler = OptimizerUnchanged.of(training.optimizer), training.scaler
    try:
        step(training)
    except OutOfMemory as error:
        alone = training.ranks.world_size == 1
        if not (alone and before.holds()):
            why = "some weights are changed and others not" if alone else "the other ranks have taken theirs"
            raise unrecoverable_oom(training, "RM559", error, why) from error
        if scaler:
            scaler.update(scaler.get_scale())  # it is to unscale the gradients that are computed again
        return False
    return True


def unrecoverable_oom(training: Training, code: str, error: BaseException, why: str) -> TrainerError:
    """Return the end of an attempt whose step cannot be undone; the next one computes half as many rows at a time.

    Args:
        code: code of the error to return.
        error: what ran out of memory.
        why: reason for which the step cannot be undone.

    Raises:
        TrainerError: RM523 where that is one row already.
    """
    state, ranks = training.state, training.ranks
    ranks.announce_end(code)
    require_divisible(state.micro_batch, step=state.step, device=training.device)
    rows = -(-state.micro_batch.size // 2)
    training.callbacks.on_out_of_memory(training, rows)
    where = f"step {state.step + 1}, rank {ranks.rank}, {training.device}"
    return TrainerError(code, what=(str(error).splitlines() or ["out of memory"])[0], where=where, why=why)


def cut_smaller(training: Training, snapshot: StepSnapshot | None) -> None:
    """Undo the batch and halve the micro-batch; the effective batch stays what it was.

    Where captured graphs held memory, they give it back instead, and the batch is taken again as it is.
    """
    state = training.state
    assert snapshot is not None
    if training.captured is not None and training.captured.release():
        training.captured = None
        snapshot.apply(training.model, training.device)
        emit("graphs_released", step=state.step + 1)
        return
    found = report(training.device)
    require_divisible(state.micro_batch, step=state.step, device=training.device)
    before = state.micro_batch.size
    state.micro_batch.shrink()
    snapshot.apply(training.model, training.device)
    if training.ranks.is_main:
        memory = vars(found) if found else None
        sizes = {"from_rows": before, "to_rows": state.micro_batch.size}
        emit("out_of_memory", step=state.step + 1, **sizes, memory=memory)


def grow_back(training: Training) -> None:
    """Try twice the micro-batch from the next step on."""
    micro_batch = training.state.micro_batch
    before = micro_batch.size
    micro_batch.grow()
    if training.ranks.is_main:
        emit("micro_batch_grows", step=training.state.step + 1, from_rows=before, to_rows=micro_batch.size)
