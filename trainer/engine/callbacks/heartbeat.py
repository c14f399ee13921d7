"""The watchdog's heartbeat: which step is running. Sections within a step are entered where the work is done."""

from __future__ import annotations

from typing import Any

from trainer.engine.callbacks.callback import Callback


class Heartbeat(Callback):
    """Notes the step before it begins; of several at once, the first."""

    accepts_launches = True
    all_ranks = True

    def on_step_begin(self, run: Any) -> None:
        """Note the step."""
        run.ranks.at_step(run.state.step)
