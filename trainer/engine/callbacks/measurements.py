"""Telemetry and trackers as a callback of the loop."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from trainer.engine.callbacks.callback import Callback, TakenSteps
from trainer.engine.state import Epoch
from trainer.telemetry.recorder import Telemetry


class Measurements(Callback):
    """Counts steps and rows, times waiting, and hands losses to the trackers; on rank 0 alone."""

    accepts_launches = True

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self._closed = False

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """Count the steps and their rows on all ranks."""
        rows = taken.rows
        count = len(rows[0]) if len(rows) == 1 else sum(map(len, rows))
        self.telemetry.on_step(count, steps=len(rows))

    def on_validation_end(self, run: Any, measured: Epoch) -> None:
        """Hand the losses on."""
        self.telemetry.on_epoch({"train_loss": measured.train_loss, "validation_loss": measured.validation_loss})

    def on_train_end(self, run: Any) -> None:
        """Write out what is left."""
        self.close()

    def on_exception(self, run: Any, error: BaseException) -> None:
        """Write out what is left."""
        self.close()

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Time the exchange between ranks, as far as this process waits for it (gloo does), and the next batch."""
        return self.telemetry.waiting(what)

    def close(self) -> None:
        """Write out what is left, once."""
        if not self._closed:
            self._closed = True
            self.telemetry.close()
