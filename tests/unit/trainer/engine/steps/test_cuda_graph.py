"""Launches of a graph cover an epoch, with a STAND-IN for graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.fixtures.graph_stand_in import StandIn
from tests.fixtures.training import network, part, same, training, weights
from trainer.data.loading.sampler import Sampler
from trainer.engine.steps.cuda_graph import MOST
from trainer.engine.steps.step_batching import Launches
from trainer.engine.training import Training


@pytest.fixture(autouse=True)
def faster_by_decree(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` also looks at the clock, which on a busy machine may say anything."""
    monkeypatch.setattr("trainer.engine.steps.step_strategy.FASTER", 0.0)


@pytest.mark.parametrize("rows", [8, 50, 8 * 16, 8 * 39 + 3])
def test_launches_of_a_graph_cover_the_epoch_with_a_stand_in(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.engine.steps.cuda_graph.addresses", lambda training: ())

    def make(**more: Any) -> Training:
        made = training(model=network(), **more)
        data = part(rows)
        made.train, made.sampler = data, Sampler(rows=rows, batch_size=8, seed=0)
        made.state.losses = torch.zeros(made.sampler.count(0))
        return made

    expected = make()
    ended = {name: value.clone() for name, value in weights(expected).items()}
    found = make()  # from here on the generators are where they were then
    steps = StandIn(found)
    found.launches = Launches(steps={8: steps})
    assert same(weights(found), ended)
    assert found.state.chain.head == expected.state.chain.head
    whole = rows // 8
    assert steps.launched == 3 * ([MOST] * (whole // MOST) + [1] * (whole % MOST))
