"""A run's callbacks as one value: each hook calls those that have it, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

from trainer.engine.callbacks.callback import EACH_STEP, Callback, TakenSteps, overrides
from trainer.engine.callbacks.user_callback import UserCallback
from trainer.runtime.events import say

HOOKS = tuple(name for name, value in vars(Callback).items() if callable(value) and not name.startswith("_"))
C = TypeVar("C")


class Callbacks:
    """The trainer's own callbacks, then the user's. Only hooks that a callback overrides are called.

    `votes` is true where any rank has a user's callback: then all ranks vote after each hook that may ask for a stop.
    """

    def __init__(
        self, callbacks: Sequence[Callback] = (), *, users: Sequence[UserCallback] = (), votes: bool = False
    ) -> None:
        self.all, self.users, self.votes = tuple(callbacks), tuple(users), votes or bool(users)
        self._hooks: dict[str, list[Callable[..., Any]]] = {
            name: [
                *(getattr(each, name) for each in self.all if overrides(each, name)),
                *(each.guarded(name) for each in self.users if overrides(each.callback, name)),
            ]
            for name in HOOKS
        }
        self._waiting = self._hooks["waiting"]

    def after(self, *callbacks: Callback) -> Callbacks:
        """Return `callbacks` before the user's and after the trainer's own that are here already."""
        return Callbacks((*self.all, *callbacks), users=self.users, votes=self.votes)

    def find(self, kind: type[C]) -> C | None:
        """Return the trainer's own callback of a class, None where there is none."""
        return next((each for each in self.all if isinstance(each, kind)), None)

    def needs_each_step(self) -> str | None:
        """Return a callback and the hook for which steps have to be taken one by one, None where there is none."""
        named = [*((type(each).__name__, each) for each in self.all), *((u.name, u.callback) for u in self.users)]
        for name, each in named:
            if not each.accepts_launches and (found := next((h for h in EACH_STEP if overrides(each, h)), None)):
                return f"{name}.{found}"
        return next((f"{n}.on_gradients" for n, each in named if overrides(each, "on_gradients")), None)

    def on_train_begin(self, run: Any) -> None:
        """Call each callback's own, as all methods here do."""
        self._call("on_train_begin", run)

    def on_epoch_begin(self, run: Any) -> None:
        """Before an epoch's steps."""
        self._call("on_epoch_begin", run)

    def on_step_begin(self, run: Any) -> None:
        """Before a step."""
        self._call("on_step_begin", run)

    def on_gradients(self, run: Any) -> None:
        """Before the gradients are used."""
        self._call("on_gradients", run)

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """After a step."""
        self._call("on_step_end", run, taken)

    def on_losses_ready(self, run: Any) -> None:
        """Before losses are read."""
        self._call("on_losses_ready", run)

    def on_validation_end(self, run: Any, measured: Any) -> None:
        """After a measurement."""
        self._call("on_validation_end", run, measured)

    def checkpoint_due(self, run: Any) -> bool:
        """Return whether any callback requests a checkpoint."""
        due_now = [due(run) for due in self._hooks["checkpoint_due"]]  # each is called: it may count
        return any(due_now)

    def on_checkpoint(self, run: Any, *, final: bool) -> None:
        """Take a checkpoint."""
        for hook in self._hooks["on_checkpoint"]:
            hook(run, final=final)

    def on_epoch_end(self, run: Any) -> None:
        """Call the hook after an epoch."""
        self._call("on_epoch_end", run)

    def logs_batches(self) -> bool:
        """Return whether any callback takes an epoch's line on its batches."""
        return bool(self._hooks["on_batch_log"])

    def on_batch_log(self, run: Any, line: dict[str, Any]) -> None:
        """Pass the line of an epoch on its batches to the callbacks."""
        self._call("on_batch_log", run, line)

    def on_out_of_memory(self, run: Any, rows: int) -> None:
        """Call the hook before an attempt ends that ran out of memory."""
        self._call("on_out_of_memory", run, rows)

    def on_train_end(self, run: Any) -> None:
        """Call the hook after the run."""
        self._call("on_train_end", run)

    def on_exception(self, run: Any, error: BaseException) -> None:
        """Call the hook of every callback after a run that failed; an error of a hook does not replace `error`."""
        for hook in self._hooks["on_exception"]:
            try:
                hook(run, error)
            except Exception as again:
                say(f"on_exception failed, too: {type(again).__name__}: {again}")

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Return the context of waiting for "data" or "comms"."""
        if not self._waiting:
            return nullcontext()
        return self._waiting[0](what) if len(self._waiting) == 1 else self._all_waiting(what)

    @contextmanager
    def _all_waiting(self, what: str) -> Iterator[None]:
        with ExitStack() as stack:
            for wait in self._waiting:
                stack.enter_context(wait(what))
            yield

    def _call(self, hook: str, *arguments: Any) -> None:
        for each in self._hooks[hook]:
            each(*arguments)
