"""The line of progress, and an event for each measurement."""

from __future__ import annotations

import sys
from typing import Any

from trainer.engine.callbacks.callback import Callback, TakenSteps
from trainer.engine.state import Epoch
from trainer.runtime.events import emit, progress, say
from trainer.telemetry.recorder import Telemetry, Window


class Progress(Callback):
    """Shows the last measurement's losses and the telemetry's latest figures behind the bar; on rank 0 alone."""

    accepts_launches = True

    def __init__(self, telemetry: Telemetry | None) -> None:
        self.telemetry = telemetry
        self.shown: Window | None = None
        self.losses = self.rate = ""
        self.bar: Any = None

    def on_train_begin(self, run: Any) -> None:
        """Open the bar where the run stands."""
        self.bar = progress(run.measurements)
        self.bar.update(len(run.state.history))

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """Show new figures of the telemetry."""
        if self.telemetry and self.telemetry.latest is not self.shown:
            self.shown = self.telemetry.latest
            self.show(refresh=True)

    def on_validation_end(self, run: Any, measured: Epoch) -> None:
        """Report the measurement."""
        emit("epoch", **measured.figures())
        self.losses = f"loss {measured.train_loss:.3f} train {measured.validation_loss:.3f} validation"
        self.rate = f"{measured.rows_per_second:,.0f} rows/s"
        self.show(refresh=False)
        self.bar.update()

    def on_train_end(self, run: Any) -> None:
        """Close the bar, and report an end before the last epoch."""
        self.bar.close()
        if run.stopped_early:
            report_early_stop(run)
        if run.stop_agreed:
            emit("callback_stop", step=run.state.step, epoch=run.state.epoch)
            say(f"early   stop after step {run.state.step:,}: a callback asked for it (should_stop)")

    def on_exception(self, run: Any, error: BaseException) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()

    def show(self, *, refresh: bool) -> None:
        """Make the text behind the bar anew."""
        figures = (self.telemetry.status() if self.telemetry else "") or self.rate
        words = ", ".join(filter(None, [self.losses, figures]))
        self.bar.set_postfix_str(words, refresh=refresh and sys.stderr.isatty())  # a log has a line every ten seconds


def report_early_stop(run: Any) -> None:
    """Report that --patience ended the run."""
    state = run.state
    emit("early_stop", step=state.step, epoch=state.history[-1].epoch, lowest=state.lowest)
    say(f"early   stop after step {state.step:,}: {run.plan.patience} validations without a lower loss (--patience)")
