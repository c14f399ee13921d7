"""Advice on larger batches: only where they pay, with figures, and without a trace in the run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.fixtures.training import network, part, same, training, weights
from trainer.data.loading.sampler import Sampler
from trainer.engine.steps import batch_size_probe as advice
from trainer.engine.steps.batch_size_probe import BatchSizeSuggestion, suggest_batch_size
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Training
from trainer.models.mlp import mlp
from trainer.run.checkpoint_writer import capture
from trainer.storage.checkpoint_tree import encode

ROWS = 640


def run(step: str, **more: Any) -> Training:
    """Dropout and batch norm under `eager`, so that random numbers and buffers count; what `direct` takes else."""
    torch.manual_seed(3)
    made = training(model=network() if step == "eager" else mlp(3, (8, 4)), epochs=1, **more)
    made.train, made.sampler = part(ROWS), Sampler(rows=ROWS, batch_size=8, seed=0)
    made.state.losses = torch.zeros(made.sampler.count(0))
    return made


def bytes_of(made: Training) -> dict[str, bytes]:
    tree = capture(made)
    assert tree is not None
    tree["state"]["seconds"] = 0.0
    for epoch in tree["state"]["history"]:
        epoch["seconds"] = epoch["rows_per_second"] = 0.0
    return encode(tree)


@pytest.mark.parametrize("step", ["eager", "direct"])
def test_run_that_was_measured_is_the_one_that_was_not(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "GAIN", 0.0)
    ended = []
    for measured in (False, True):
        made = run(step)
        choice = choose_step(step, made)
        found = suggest_batch_size(made, choice) if measured else None
        assert (found is not None) == measured
        weights(made)
        ended.append(bytes_of(made))
    assert ended[0] == ended[1]


def test_steps_that_are_not_rolled_back_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice.Memory, "restore", lambda *_: None)
    ended = []
    for measured in (False, True):
        made = run("eager")
        choice = choose_step("eager", made)
        if measured:
            suggest_batch_size(made, choice)
        ended.append({name: value.clone() for name, value in weights(made).items()})
    assert not same(*ended)


def test_suggestion_is_absent_where_little_is_gained_or_nothing_can_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("direct")
    choice = choose_step("direct", made)
    rates = {8: 1000.0, 64: 1999.0}
    monkeypatch.setattr(advice, "rate", lambda training, choice, size, before: rates[size])
    assert suggest_batch_size(made, choice) is None
    rates[64] = 2000.0
    found = suggest_batch_size(made, choice)
    assert found == BatchSizeSuggestion(batch_size=8, rows_per_second=1000, larger=64, larger_rows_per_second=2000)
    assert found.message().startswith("batch 8 trains 1,000 rows/s; batch 64 would train 2,000 rows/s (measured now")
    made.sampler = Sampler(rows=639, batch_size=8, seed=0)
    assert suggest_batch_size(made, choice) is None
    fp16 = training("fp16")
    fp16.train, fp16.sampler = made.train, Sampler(rows=ROWS, batch_size=8, seed=0)
    assert suggest_batch_size(fp16, choose_step("eager", fp16)) is None
