"""How many steps are launched at once."""

from __future__ import annotations

import pytest
from torch import Tensor

from tests.fixtures.step_runs import direct
from trainer.engine.steps.step_batching import Launches


@pytest.fixture(autouse=True)
def faster_by_decree(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` also looks at the clock, which on a busy machine may say anything."""
    monkeypatch.setattr("trainer.engine.steps.step_strategy.FASTER", 0.0)


def test_launches_are_each_as_long_as_possible() -> None:
    made = direct()
    assert made.launches is not None
    taken: list[int] = []

    class Count:
        most = 4

        def take(self, rows: Tensor, losses: Tensor) -> None:
            taken.append(len(losses))

    launches = list(Launches(steps={8: Count()})(made))
    assert [(stop, due) for _, stop, due in launches] == [(False, False)] * 2
    assert [each.first for each, _, _ in launches] == [1, 5]
    assert taken == [4, 2]
