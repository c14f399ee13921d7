"""Telemetry counts every step's rows, and is closed once however the run ends."""

from types import SimpleNamespace

import pytest
import torch

from trainer.engine.callbacks.callback import TakenSteps
from trainer.engine.callbacks.measurements import Measurements


class Telemetry:
    """Notes what it is given, in order."""

    def __init__(self):
        self.calls = []

    def on_step(self, rows, *, steps):
        self.calls.append((rows, steps))

    def on_epoch(self, losses):
        self.calls.append(losses)

    def waiting(self, what):
        return f"waiting for {what}"

    def close(self):
        self.calls.append("closed")


@pytest.mark.parametrize(("sizes", "rows"), [([8], 8), ([8, 8, 3], 19)])
def test_rows_of_all_steps_are_counted(sizes, rows):
    telemetry = Telemetry()
    taken = TakenSteps(1, [torch.arange(size) for size in sizes], torch.zeros(len(sizes)))
    Measurements(telemetry).on_step_end(None, taken)
    assert telemetry.calls == [(rows, len(sizes))]


def test_losses_of_a_measurement_are_handed_on():
    telemetry = Telemetry()
    Measurements(telemetry).on_validation_end(None, SimpleNamespace(train_loss=0.5, validation_loss=0.25))
    assert telemetry.calls == [{"train_loss": 0.5, "validation_loss": 0.25}]


def test_telemetry_is_closed_once_after_an_end_and_an_error():
    telemetry = Telemetry()
    callback = Measurements(telemetry)
    callback.on_train_end(None)
    callback.on_exception(None, RuntimeError())
    assert telemetry.calls == ["closed"]
    assert callback.waiting("data") == "waiting for data"
