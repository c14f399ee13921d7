"""Sums over moving windows against sums written out, wherever a block of values begins."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.data.profiles.rolling import correlation, lagged, ratio, window_mean, window_sum, z_score

VALUES = np.random.default_rng(0).normal(size=40)


def test_lagged_values_are_those_before_and_nan_where_there_are_none() -> None:
    assert lagged(np.array([1.0, 2.0, 3.0]), 0).tolist() == [1.0, 2.0, 3.0]
    assert np.array_equal(lagged(np.array([1.0, 2.0, 3.0]), 2), [np.nan, np.nan, 1.0], equal_nan=True)
    for bars in (3, 4):
        assert np.isnan(lagged(np.array([1.0, 2.0, 3.0]), bars)).all()


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 7, 8, 14, 40, 41])
def test_window_holds_so_many_values_and_is_nan_before(window: int) -> None:
    found = window_sum(VALUES, window)
    assert np.isnan(found[: window - 1]).all()
    expected = [VALUES[end - window : end].sum() for end in range(window, len(VALUES) + 1)]
    assert np.allclose(found[window - 1 :], expected, rtol=0, atol=1e-12)
    assert np.array_equal(window_mean(VALUES, window), found / window, equal_nan=True)


@pytest.mark.parametrize("begin", [1, 5, 17])
def test_sum_does_not_depend_on_where_the_values_begin(begin: int) -> None:
    whole, part = window_sum(VALUES, 13), window_sum(VALUES[begin:], 13)
    assert np.array_equal(whole[begin + 12 :], part[12:])  # to the last bit


def test_quotient_by_zero_is_the_value_that_stands_for_it() -> None:
    assert ratio(np.array([1.0, 0.0, 3.0]), np.array([2.0, 0.0, 0.0]), -1.0).tolist() == [0.5, -1.0, -1.0]


def test_z_score_counts_deviations_from_the_mean_of_the_window() -> None:
    found = z_score(VALUES, 6)
    assert np.isnan(found[:5]).all()
    for end in range(6, len(VALUES) + 1):
        last = VALUES[end - 6 : end]
        assert found[end - 1] == pytest.approx((last[-1] - last.mean()) / last.std())


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_equal_values_have_a_z_score_of_exactly_zero(value: float) -> None:
    assert (z_score(np.full(9, value), 4)[3:] == 0.0).all()


def test_correlation_is_that_of_the_window() -> None:
    other = np.random.default_rng(1).normal(size=40) + VALUES
    found = correlation(VALUES, other, 10)
    assert np.isnan(found[:9]).all()
    for end in range(10, 41):
        expected = np.corrcoef(VALUES[end - 10 : end], other[end - 10 : end])[0, 1]
        assert found[end - 1] == pytest.approx(expected, abs=1e-9)


def test_correlation_with_a_side_that_does_not_vary_is_zero_and_never_beyond_one() -> None:
    flat = np.full(40, 0.1)
    assert (correlation(VALUES, flat, 5)[4:] == 0.0).all()
    assert np.abs(correlation(VALUES, 3 * VALUES, 5)[4:]).max() <= 1.0
    assert correlation(VALUES, -VALUES, 5)[-1] == pytest.approx(-1.0)
