"""Sums over moving windows that depend on nothing but the values in the window.

A running sum would carry rounding from one bar to the next, so its value would depend on where it began.
Here a window is put together from halves: log2(window) additions a bar, the same ones wherever a block starts.
"""

from __future__ import annotations

import numpy as np

from trainer.data.bar import Floats


def lagged(values: Floats, bars: int) -> Floats:
    """Return the value `bars` earlier along the first axis, NaN where there is none."""
    earlier = np.full_like(values, np.nan)
    if bars < len(values):
        earlier[bars:] = values[: len(values) - bars]
    return earlier


def window_sum(values: Floats, window: int) -> Floats:
    """Return the sum of the last `window` values along the first axis, NaN before there are enough."""
    total, power, reach = None, values, 0
    for bit in range(window.bit_length()):
        if window >> bit & 1:
            total = power if total is None else total + lagged(power, reach)
            reach += 1 << bit
        if window >> bit + 1:
            power = power + lagged(power, 1 << bit)
    assert total is not None
    return total


def window_mean(values: Floats, window: int) -> Floats:
    """Return the mean of the last `window` values."""
    return window_sum(values, window) / window


def ratio(above: Floats, below: Floats, otherwise: float) -> Floats:
    """Return `above` / `below`, and `otherwise` where `below` is zero.

    Args:
        above: dividends, shape (rows,).
        below: divisors, shape (rows,).
        otherwise: result where the divisor is zero.
    """
    return np.where(below == 0, otherwise, above / np.where(below == 0, 1.0, below))


def z_score(values: Floats, window: int) -> Floats:
    """Return how many standard deviations a value is above the mean of the last `window`, itself included.

    Differences from the value itself are summed, so that equal values give exactly zero.
    """
    first, second = np.zeros_like(values), np.zeros_like(values)
    for bars in range(1, window):
        difference = lagged(values, bars) - values
        first += difference
        second += difference * difference
    mean = first / window
    deviation = np.sqrt(np.maximum(second / window - mean * mean, 0.0))
    return ratio(-mean, deviation, 0.0)


def correlation(left: Floats, right: Floats, window: int) -> Floats:
    """Return Pearson's correlation over the last `window` pairs, 0 where one side does not vary.

    Args:
        left: shape (rows,).
        right: shape (rows,).
        window: number of pairs, at least 2.
    """
    sums = [window_sum(values, window) for values in (left, right, left * left, right * right, left * right)]
    one, two, one_one, two_two, product = sums
    spread_one, spread_two = (
        np.where(v <= 1e-12 * window * squares, 0.0, v)
        for v, squares in ((window * one_one - one * one, one_one), (window * two_two - two * two, two_two))
    )
    found = ratio(window * product - one * two, np.sqrt(spread_one * spread_two), 0.0)
    return np.where(np.isnan(one + two), np.nan, np.clip(found, -1.0, 1.0))
