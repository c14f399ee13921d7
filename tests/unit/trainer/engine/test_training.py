"""A planned run: what is trained, resumed and clipped."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.fixtures.planned_runs import planned, tokens
from tests.fixtures.training import gone_on, interrupted, network, part, same
from trainer.engine.loop import fit
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Plan, Training, changing_state, new_training


def test_frozen_weights_are_neither_trained_nor_copied() -> None:
    made = tokens()
    before = made.model.frozen.weight.clone()  # type: ignore[union-attr, operator]
    fit(made)
    assert torch.equal(made.model.frozen.weight, before)  # type: ignore[union-attr, arg-type]
    assert "frozen.weight" not in made.state.best
    assert made.state.best.keys() == changing_state(made.model).keys()
    assert sum(len(group["params"]) for group in made.optimizer.param_groups) == 3


WAYS: dict[str, dict[str, Any]] = {
    "steps": {"max_steps": 17},
    "evaluations": {"eval_every": 4},
    "both": {"eval_every": 5, "max_steps": 18, "clip_norm": 0.1},
    "early stop": {"epochs": 40, "learning_rate": 0.3, "patience": 2, "eval_every": 3},
    "host": {"best_on_host": True, "eval_every": 4, "patience": 4},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [planned, tokens])
def test_resumed_run_equals_the_undisturbed_one_to_the_bit(make: Any, way: str) -> None:
    def begin(**more: Any) -> Training:
        return make(**WAYS[way], **more)

    undisturbed = begin()
    history = fit(undisturbed)
    for step in sorted(
        {1, 4, 5, 7, 8, undisturbed.state.step - 1, undisturbed.state.step} & set(range(1, undisturbed.state.step + 1))
    ):
        resumed = gone_on(begin, interrupted(begin, step))
        if make is tokens:
            resumed.model.frozen.load_state_dict(undisturbed.model.frozen.state_dict())  # type: ignore[union-attr]
        again = fit(resumed)
        assert [epoch.facts() for epoch in again] == [epoch.facts() for epoch in history], step
        assert same(resumed.model.state_dict(), undisturbed.model.state_dict()), step


def test_clipping_is_not_taken_several_steps_at_a_time() -> None:
    made = new_training(
        network(noisy=False),
        part(),
        part(20, 1),
        Plan(epochs=1, batch_size=8, learning_rate=1e-2, seed=0, clip_norm=1.0),
    )
    assert "clipped" in choose_step("auto", made).reason
