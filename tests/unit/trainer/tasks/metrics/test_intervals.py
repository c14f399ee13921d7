"""Intervals of figures by the bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.tasks.metrics.intervals import GROUPS, accuracy_interval, r2_interval


@pytest.mark.parametrize("rows", [400, GROUPS * 3])
def test_accuracy_interval_is_that_of_the_normal_approximation(rows: int) -> None:
    right = (np.arange(rows) % 5 > 0) * 1.0  # 80 %
    found = accuracy_interval(right)
    away = 1.96 * np.sqrt(0.8 * 0.2 / rows)
    assert found["accuracy_low"] == pytest.approx(0.8 - away, abs=away / 4)
    assert found["accuracy_high"] == pytest.approx(0.8 + away, abs=away / 4)


def test_r2_interval_holds_the_figure_and_is_exact_for_a_constant_ratio() -> None:
    rng = np.random.default_rng(0)
    errors, base = rng.random(300), rng.random(300) * 4
    found = r2_interval("mean", errors, base)
    assert found["r2_vs_mean_low"] < 1 - errors.sum() / base.sum() < found["r2_vs_mean_high"]
    same = r2_interval("mean", base / 4, base)
    assert same["r2_vs_mean_low"] == pytest.approx(0.75) == same["r2_vs_mean_high"]
