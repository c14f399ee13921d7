"""Steps without autograd give the losses of those with it."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.training import same, weights
from trainer.data.loading.placement import TensorPartition
from trainer.engine.steps.manual_autograd import at_once
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Plan, Training, new_training
from trainer.models.mlp import mlp


@pytest.fixture(autouse=True)
def faster_by_decree(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` also looks at the clock, which on a busy machine may say anything."""
    monkeypatch.setattr("trainer.engine.steps.step_strategy.FASTER", 0.0)


WIDE = {"inputs": 16, "targets": 1}


@pytest.mark.parametrize("batch_size", [16, 32, 48])
def test_batches_that_are_gathered_together_give_the_losses_of_each(batch_size: int) -> None:
    generator = torch.Generator().manual_seed(1)
    data = TensorPartition(**{name: torch.randn(400, width, generator=generator) for name, width in WIDE.items()})
    assert at_once(batch_size, data.inputs, data.targets) > 1

    def made(step: str) -> Training:
        torch.manual_seed(1)
        plan = Plan(epochs=2, batch_size=batch_size, learning_rate=1e-2, seed=0)
        run = new_training(mlp(16, (32, 16)), data, data, plan)
        choose_step(step, run)
        return run

    found, expected = made("direct"), made("eager")
    assert same(weights(found), weights(expected))
    assert found.state.history[-1].facts() == expected.state.history[-1].facts()
