from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.bar import Bars
from trainer.data.features.daily_features import FEATURES, VOLATILITY_FLOOR, feature_matrix

LOOKBACK = max(feature.lookback for feature in FEATURES)

COUNT = 150
NAMES = [feature.name for feature in FEATURES]


def with_future_of(past: Bars, future: Bars, now: int) -> Bars:
    """`past` up to and including bar `now`, then other prices, volumes and VIX values."""
    columns = {name: values.copy() for name, values in vars(past).items()}
    for name in columns.keys() - {"date"}:
        columns[name][now + 1 :] = getattr(future, name)[now + 1 :]
    return Bars(**columns)


def test_features_are_about_a_dozen_each_described() -> None:
    assert 10 <= len(FEATURES) <= 15
    assert len(set(NAMES)) == len(NAMES)
    assert all(feature.formula and feature.unit for feature in FEATURES)


@given(now=st.integers(0, COUNT - 1), seed=st.integers(1, 2**32 - 1))
@settings(deadline=None)
def test_another_future_changes_no_bit_of_the_past(make_bars: Callable[..., Bars], now: int, seed: int) -> None:
    past = make_bars(COUNT)
    changed = feature_matrix(with_future_of(past, make_bars(COUNT, seed), now))
    assert changed[: now + 1].tobytes() == feature_matrix(past)[: now + 1].tobytes()


@given(end=st.integers(1, COUNT))
@settings(deadline=None)
def test_bars_not_yet_there_change_no_bit_either(make_bars: Callable[..., Bars], end: int) -> None:
    bars = make_bars(COUNT)
    assert feature_matrix(bars[:end]).tobytes() == feature_matrix(bars)[:end].tobytes()


def test_property_test_would_catch_a_look_ahead(make_bars: Callable[..., Bars]) -> None:
    past, now = make_bars(COUNT), 100
    changed = with_future_of(past, make_bars(COUNT, 1), now)
    centred = [np.convolve(bars.close, np.ones(3) / 3, "same") for bars in (past, changed)]
    assert centred[0][: now + 1].tobytes() != centred[1][: now + 1].tobytes()


@pytest.mark.parametrize("feature", FEATURES, ids=NAMES)
def test_lookback_is_exactly_the_rows_that_are_missing(make_bars: Callable[..., Bars], feature: object) -> None:
    values = feature.compute(make_bars(COUNT))  # type: ignore[attr-defined]
    assert values.shape == (COUNT,)
    assert np.flatnonzero(np.isfinite(values))[0] == feature.lookback  # type: ignore[attr-defined]
    assert np.isfinite(values[feature.lookback :]).all()  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 2, LOOKBACK, LOOKBACK + 1])
def test_short_data_gives_missing_rows_not_an_error(make_bars: Callable[..., Bars], count: int) -> None:
    matrix = feature_matrix(make_bars(count))
    assert matrix.shape == (count, len(FEATURES))
    assert np.isfinite(matrix).all(axis=1).sum() == max(0, count - LOOKBACK)


def test_values_agree_with_their_formulas(make_bars: Callable[..., Bars]) -> None:
    bars = make_bars(COUNT)
    t = COUNT - 1
    c, v, x = bars.close, bars.volume, bars.vix_close
    r = [math.nan, *(math.log(c[i] / c[i - 1]) for i in range(1, COUNT))]
    spread = [math.log(bars.high[i] / bars.low[i]) ** 2 / (4 * math.log(2)) for i in range(COUNT)]
    mean = lambda values: math.fsum(values) / len(values)  # noqa: E731
    last = lambda values, n: list(values[t - n + 1 : t + 1])  # noqa: E731
    squares = [value * value for value in r]
    expected = {
        "return_1": r[t],
        "return_5": math.log(c[t] / c[t - 5]),
        "range_1": 0.5 * math.log(spread[t]),
        "range_5": 0.5 * math.log(mean(last(spread, 5))),
        "realised_5": 0.5 * math.log(mean(last(squares, 5))),
        "realised_20": 0.5 * math.log(mean(last(squares, 20))),
        "downside_20": sum(min(value, 0) ** 2 for value in last(r, 20)) / sum(last(squares, 20)),
        "drawdown_60": math.log(c[t] / max(last(c, 60))),
        "volume_20": math.log((1 + v[t]) / (1 + mean(last(v, 20)))),
        "vix": math.log(x[t]),
        "vix_change_1": math.log(x[t] / x[t - 1]),
        "vix_20": math.log(x[t] / mean(last(x, 20))),
    }
    assert list(expected) == NAMES
    np.testing.assert_allclose(feature_matrix(bars)[t], list(expected.values()), rtol=1e-12)


def test_market_that_stands_still_has_finite_features() -> None:
    flat = np.full(COUNT, 100.0)
    dates = np.datetime64("2020-01-01T00:00:00") + np.arange(COUNT) * np.timedelta64(60, "s")
    bars = Bars(
        date=dates, open=flat, high=flat, low=flat, close=flat, volume=np.zeros(COUNT), vix_close=np.full(COUNT, 20.0)
    )
    last = dict(zip(NAMES, feature_matrix(bars)[-1], strict=True))
    assert all(map(math.isfinite, last.values()))
    assert last["realised_20"] == pytest.approx(math.log(VOLATILITY_FLOOR))
    assert last["downside_20"] == 0.5
