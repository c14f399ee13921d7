"""The line of progress shows the last losses and the newest figures, and is closed however the run ends."""

from types import SimpleNamespace

import pytest

from trainer.engine.callbacks import progress
from trainer.engine.callbacks.progress import Progress


class Bar:
    """Notes what the bar is given, in order."""

    def __init__(self, total):
        self.total, self.calls, self.text = total, [], ""

    def update(self, count=1):
        self.calls.append(count)

    def close(self):
        self.calls.append("closed")

    def set_postfix_str(self, text, *, refresh):
        self.text = text


@pytest.fixture
def reported(monkeypatch):
    found = []
    monkeypatch.setattr(progress, "progress", Bar)
    monkeypatch.setattr(progress, "emit", lambda name, **fields: found.append((name, fields)))
    monkeypatch.setattr(progress, "say", lambda _: None)
    return found


def run(**more):
    state = SimpleNamespace(history=[1, 2], step=7, epoch=2)
    return SimpleNamespace(measurements=5, state=state, **{"stopped_early": False, "stop_agreed": False} | more)


MEASURED = SimpleNamespace(
    train_loss=0.5, validation_loss=0.25, rows_per_second=12345.6, figures=lambda: {"epoch": 3}
)  # fmt: skip


def test_resumed_run_shows_what_was_measured_before(reported):
    callback = Progress(None)
    callback.on_train_begin(run())
    callback.on_validation_end(run(), MEASURED)
    assert (callback.bar.total, callback.bar.calls) == (5, [2, 1])
    assert callback.bar.text == "loss 0.500 train 0.250 validation, 12,346 rows/s"
    assert reported == [("epoch", {"epoch": 3})]


def test_figures_of_the_telemetry_replace_the_rate_when_they_are_new(reported):
    telemetry = SimpleNamespace(latest=None, status=lambda: "99 % busy")
    callback = Progress(telemetry)
    callback.on_train_begin(run())
    callback.on_step_end(run(), None)
    assert callback.bar.text == ""
    telemetry.latest = object()
    callback.on_step_end(run(), None)
    assert callback.bar.text == "99 % busy"


def test_stop_by_a_callback_is_an_event(reported):
    callback = Progress(None)
    callback.on_train_begin(run())
    callback.on_train_end(run(stop_agreed=True))
    assert reported == [("callback_stop", {"step": 7, "epoch": 2})]
    assert callback.bar.calls[-1] == "closed"


def test_error_closes_the_bar_where_there_is_one(reported):
    callback = Progress(None)
    callback.on_exception(run(), RuntimeError())  # before the first step
    callback.on_train_begin(run())
    callback.on_exception(run(), RuntimeError())
    assert callback.bar.calls == [2, "closed"]
