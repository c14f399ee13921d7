"""The base class of all callbacks, with the hooks that the loop calls; names are those of skorch and Lightning."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from torch import Tensor


class TakenSteps(NamedTuple):
    """Optimizer steps just taken: one, or several at once where `accepts_launches` allows it.

    `first` is the number of the first of them, from 1. `rows` holds the row numbers of each step's batch over all
    ranks, on the host. `losses` (steps,) are this rank's parts of the batches' mean losses, on the device: reading
    one waits for the device.
    """

    first: int
    rows: Sequence[Tensor]
    losses: Tensor


class Callback:
    """A callback of the training loop. Each hook is empty; override those that you need.

    `run` is the `trainer.engine.training.Training`. To read: `run.model`, `run.optimizer`, `run.device`, `run.ranks`,
    `run.steps` (of the whole run) and `run.state` with `step`, `epoch` (finished ones), `batch`, `history` and
    `lowest`. `run.should_stop = True` ends the run after the step at hand, with its model saved.

    Hooks are called in the order of the list: the trainer's own callbacks, then yours as they were given.

    Attributes:
        changes_results: whether it changes weights, gradients, learning rates or anything else that a later step
            depends on. Random numbers drawn in a hook of a callback that does not are drawn aside from the run's.
        all_ranks: whether every rank has one; otherwise rank 0 alone. Only such a one may use collectives.
        accepts_launches: whether `on_step_begin` and `on_step_end` may be called once for several steps.
    """

    changes_results: bool = False
    all_ranks: bool = False
    accepts_launches: bool = False

    def on_train_begin(self, run: Any) -> None:
        """Before the first step, also of a resumed run."""

    def on_epoch_begin(self, run: Any) -> None:
        """Before the first step of an epoch, and before the first step after a resume within one."""

    def on_step_begin(self, run: Any) -> None:
        """Before an optimizer step computes anything."""

    def on_gradients(self, run: Any) -> None:
        """After backward, the sum over ranks and fp16's unscaling; before gradients are clipped and used.

        It is called again for a step that is repeated because memory ran out.
        """

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """After an optimizer step; `run.state.step` counts it."""

    def on_losses_ready(self, run: Any) -> None:
        """Before the losses since the last measurement are read, which waits for the device."""

    def on_validation_end(self, run: Any, measured: Any) -> None:
        """After a measurement; `measured` is its `trainer.engine.state.Epoch`, in `run.state.history` as well."""

    def checkpoint_due(self, run: Any) -> bool:
        """Return whether the step that now ends is to be followed by a checkpoint; rank 0 decides."""
        return False

    def on_checkpoint(self, run: Any, *, final: bool) -> None:
        """Take a checkpoint, or observe that the callbacks before this one have; `final` where the run then stops.

        The trainer's own copies the state to the host; the files may still be in the making afterwards.
        """

    def on_epoch_end(self, run: Any) -> None:
        """After the last step of an epoch and its measurement; `run.state.epoch` counts it."""

    def on_batch_log(self, run: Any, line: dict[str, Any]) -> None:
        """After an epoch, on rank 0: the line of batches.jsonl with its batches' hash chain and losses."""

    def on_out_of_memory(self, run: Any, rows: int) -> None:
        """Before an attempt ends that ran out of memory; the next one computes at most `rows` rows at a time."""

    def on_train_end(self, run: Any) -> None:
        """After the last step; `run.model` holds the weights that are kept."""

    def on_exception(self, run: Any, error: BaseException) -> None:
        """In place of `on_train_end` where the run ends by an error or is stopped."""

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Return the context of a stretch in which this process only waits, for "data" or "comms"."""
        return nullcontext()


# The hooks after whose call for several steps at once a user's callback would see other weights than it expects.
EACH_STEP = ("on_step_begin", "on_gradients", "on_step_end")


def overrides(callback: Callback, hook: str) -> bool:
    """Return whether `callback` has its own `hook`."""
    return getattr(type(callback), hook) is not getattr(Callback, hook)
