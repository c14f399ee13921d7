"""The NaN guard as a callback of the loop."""

from __future__ import annotations

from typing import Any

from trainer.engine.callbacks.callback import Callback, TakenSteps
from trainer.telemetry.nan_guard import NanGuard


class NanCheck(Callback):
    """Records each step's loss, and checks them every so often, before a measurement and at the end of an epoch.

    Its hooks raise RM506 where a loss was not finite.
    """

    accepts_launches = True
    all_ranks = True

    def __init__(self, guard: NanGuard) -> None:
        self.guard = guard

    def on_step_begin(self, run: Any) -> None:
        """Check where it is time to."""
        self.guard.begin()

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """Record the rows and the losses, which stay on the device; on several ranks a step's rows are its own."""
        rows = taken.rows
        if run.ranks.world_size > 1:
            rows = [each[run.ranks.rank_slice(len(each))] for each in rows]
        self.guard.record(taken.first, rows, taken.losses)

    def on_losses_ready(self, run: Any) -> None:
        """Check all that were recorded."""
        self.guard.check()
