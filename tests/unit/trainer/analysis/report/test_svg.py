"""Charts as SVG."""

from __future__ import annotations

import pytest

from trainer.analysis.report.svg import ticks

pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.001, 0.002), (1e6, 5e6)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert low - 1e-9 <= found[0] and found[-1] <= high + 1e-9 * abs(high)
