"""Training with a line of progress, and an event for each epoch."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from trainer.engine.loop import fit
from trainer.engine.state import Epoch
from trainer.engine.training import StoppedError, Training
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, progress, say
from trainer.telemetry.hooks import Watch


def fit_with_progress(training: Training) -> list[Epoch]:
    """Train, and report each epoch as a JSON event and on the progress line.

    Raises:
        TrainerError: RM554 where the run was asked to end.
    """
    leads = training.ranks.leads
    with progress(training.measurements) if leads else contextlib.nullcontext() as bar:
        if bar is not None:
            bar.update(len(training.state.history))

        line = ProgressLine(bar=bar, watch=training.watch)
        training.watch.show = line.show

        def report(epoch: Epoch) -> None:
            if bar is None:
                return
            emit("epoch", **epoch.figures())
            training.watch.epoch_was({"train_loss": epoch.train_loss, "validation_loss": epoch.validation_loss})
            line.losses = f"loss {epoch.train_loss:.3f} train {epoch.validation_loss:.3f} validation"
            line.rate = f"{epoch.rows_per_second:,.0f} rows/s"
            line.show(refresh=False)
            bar.update()

        try:
            history = fit(training, report)
            if leads and training.stopped_early:
                tell_early_stop(training)
            return history
        except StoppedError:
            raise TrainerError("RM554", what=f"stopped after step {training.state.step:,}") from None
        finally:
            training.watch.close()
            if training.keeper:
                training.keeper.close()


def tell_early_stop(training: Training) -> None:
    """Report that --patience ended the run."""
    state = training.state
    emit("early_stop", step=state.step, epoch=state.history[-1].epoch, lowest=state.lowest)
    say(f"early   stop after step {state.step:,}: {training.patience} validations without a lower loss (--patience)")


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
