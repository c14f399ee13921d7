from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.bar import Bars
from trainer.data.split import Split, split_by_time
from trainer.tasks.bars import make_dataset
from trainer.tasks.metrics.regression import BASELINES, baseline_forecasts, r2, rmse, score


@pytest.fixture
def split(make_bars: Callable[..., Bars]) -> Split:
    return split_by_time(make_dataset(make_bars(400), 5), embargo=5)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_a_perfect_forecast_scores_one_and_the_baseline_zero(values: list[float]) -> None:
    target = np.array(values)
    baseline = target + 1
    assert r2(target, target, baseline) == 1
    assert r2(target, baseline, baseline) == 0
    assert r2(target, target + 2, baseline) == pytest.approx(-3, rel=1e-6)


def test_no_r2_against_a_baseline_without_error() -> None:
    target = np.ones(5)
    assert r2(target, target * 2, target) is None


def test_baselines_know_the_training_part_only(split: Split) -> None:
    forecasts = baseline_forecasts(split.train, split.test)
    assert forecasts.keys() == BASELINES.keys()
    np.testing.assert_array_equal(forecasts["mean"], split.train.target.mean())
    np.testing.assert_array_equal(forecasts["persistence"], split.test.persistence)
    for forecast in forecasts.values():
        assert forecast.shape == (len(split.test),)


def test_least_squares_leaves_residuals_that_features_cannot_explain(split: Split) -> None:
    residuals = split.train.target - baseline_forecasts(split.train, split.train)["linear"]
    np.testing.assert_allclose(split.train.features.T @ residuals, 0, atol=1e-6)
    assert residuals.mean() == pytest.approx(0, abs=1e-9)


def test_the_score_holds_rows_error_and_every_baseline(split: Split) -> None:
    figures = score(split.train, split.test, split.test.persistence)
    assert figures["rows"] == len(split.test)
    assert figures["rmse"] == rmse(split.test.target, split.test.persistence)
    assert figures["r2_vs_persistence"] == 0
    assert {name for name in figures if name.startswith("r2")} == {f"r2_vs_{name}" for name in BASELINES}


def test_a_baseline_that_misses_by_rounding_alone_is_exact() -> None:
    target = np.linspace(100, 900, 50)
    assert r2(target, target + 1, np.nextafter(target, np.inf)) is None
    assert r2(target, target + 1, target + 1e-4) == pytest.approx(1 - 1e8, rel=1e-3)
