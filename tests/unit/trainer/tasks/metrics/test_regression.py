from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.baselines import baseline_forecasts
from trainer.data.bar import Bars
from trainer.data.dataset import Dataset
from trainer.data.split import Split, split_by_time
from trainer.tasks.bars import make_dataset
from trainer.tasks.metrics import regression
from trainer.tasks.metrics.regression import BASELINES, r2, rmse, score


@pytest.fixture
def split(make_bars: Callable[..., Bars]) -> Split:
    return split_by_time(make_dataset(make_bars(400), 5), embargo=5)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_perfect_forecast_scores_one_and_the_baseline_zero(values: list[float]) -> None:
    target = np.array(values)
    baseline = target + 1
    assert r2(target, target, baseline) == 1
    assert r2(target, baseline, baseline) == 0
    assert r2(target, target + 2, baseline) == pytest.approx(-3, rel=1e-6)


def test_r2_against_a_baseline_without_error_is_absent() -> None:
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


def test_score_holds_rows_error_and_every_baseline(split: Split) -> None:
    figures = score(split.test, split.test.persistence, baseline_forecasts(split.train, split.test))
    assert figures["rows"] == len(split.test)
    assert figures["rmse"] == rmse(split.test.target, split.test.persistence)
    assert figures["r2_vs_persistence"] == 0
    assert {name for name in figures if name.startswith("r2")} == {f"r2_vs_{name}" for name in BASELINES}


def test_baseline_that_misses_by_rounding_alone_is_exact() -> None:
    target = np.linspace(100, 900, 50)
    assert r2(target, target + 1, np.nextafter(target, np.inf)) is None
    assert r2(target, target + 1, target + 1e-4) == pytest.approx(1 - 1e8, rel=1e-3)


def collinear(rows: int, seed: int, dtype: type) -> Dataset:
    """SYNTHETIC: distances that are sums of each other but for the rounding of `dtype`, levels far from zero."""
    rng = np.random.default_rng(seed)
    near, width, level = rng.normal(size=(3, rows))
    columns = [near, width, near + width, near - 3 * width, 4000 + level, np.full(rows, 7.1), near + width + 0.5]
    features = np.column_stack(columns).astype(dtype)
    target = 2 * near - width + 0.5 * level + rng.normal(size=rows)
    return Dataset(date=np.arange(rows).astype("M8[s]"), features=features, target=target, persistence=target * np.nan)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [60, 3000])
def test_linear_baseline_of_collinear_features_is_that_of_independent_ones(rows: int, dtype: type) -> None:
    train, test = collinear(rows, 1, dtype), collinear(500, 2, dtype)
    plain = [np.column_stack([np.ones(len(part)), part.features[:, [0, 1, 4]]]).astype(float) for part in (train, test)]
    weights = np.linalg.lstsq(plain[0], train.target, rcond=None)[0]
    expected = plain[1] @ weights
    np.testing.assert_allclose(baseline_forecasts(train, test)["linear"], expected, atol=2e-3)


def test_linear_baseline_in_pieces_is_the_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = collinear(900, 3, np.float32), collinear(100, 4, np.float32)
    whole = baseline_forecasts(train, test)["linear"]
    monkeypatch.setattr(
        "trainer.tasks.metrics.regression.chunks", lambda n: [slice(a, min(a + 97, n)) for a in range(0, n, 97)]
    )
    np.testing.assert_allclose(baseline_forecasts(train, test)["linear"], whole, rtol=1e-9)


def test_linear_baseline_takes_only_the_commonest_codes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regression, "APART", 3)
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [3, 1], [0, 0], [1, 1]], np.float64)
    target = np.array([1.0, 1.0, 5.0, 5.0, 9.0, 7.0, 1.0, 5.0])
    rows = Dataset(date=np.arange(8).astype("M8[s]"), features=codes, target=target, persistence=np.full(8, np.nan))
    apart = regression.values_apart(rows, (4, 2))
    assert {place: values.tolist() for place, values in apart.items()} == {0: [0], 1: [0, 1]}
    one = replace(rows, features=codes[:, :1])
    np.testing.assert_allclose(baseline_forecasts(one, one, (4,))["linear"], target, atol=1e-9)
    monkeypatch.setattr(regression, "APART", 2)
    np.testing.assert_allclose(baseline_forecasts(one, one, (4,))["linear"], [1, 1, 5, 5, 8, 8, 1, 5], atol=1e-9)
