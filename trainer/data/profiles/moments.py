"""Skewness and kurtosis of price under growing profiles, without the profiles.

A bar's own moments have closed forms. They are added to those of the bars before by Pebay's formulas (Sandia
report SAND2008-6212, 2008), which hold sums about the mean: sums of powers about a fixed price would cancel where the
market has left that price, by a hundredth of the value and more at 10,000 rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.bar import Floats
from trainer.data.profiles.profile import BarRows
from trainer.data.profiles.rolling import ratio
from trainer.data.profiles.session_grid import Grid


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Of each bar alone, (bars,): mass in volume units, mean in rows, sums of mass * (row - mean)^k for k = 2, 3, 4."""

    mass: Floats
    mean: Floats
    second: Floats
    third: Floats
    fourth: Floats


def shape(grid: Grid, rows: BarRows) -> tuple[Floats, Floats]:
    """Return skewness and excess kurtosis of price under the profile so far, (bars,); 0 where it is one row."""
    one = bar_moments(rows, grid)
    mass, second, third, fourth = sums_so_far(grid, one)
    flat = second == 0
    variance = np.where(flat, 1.0, ratio(second, mass, 1.0))
    skew, kurtosis = ratio(third, mass, 0.0) / variance**1.5, ratio(fourth, mass, 0.0) / variance**2 - 3
    return np.where(flat, 0.0, skew), np.where(flat, 0.0, kurtosis)


def bar_moments(rows: BarRows, grid: Grid) -> Moments:
    """Return the moments of each bar; rows count from the session's first, which keeps the numbers small.

    A bar is a uniform part, whose moments about its middle are those of the discrete uniform distribution, and
    what its lowest and highest row get beyond it.
    """
    n, half = (rows.high - rows.low + 1).astype(np.float64), (rows.high - rows.low) / 2
    share, below, above = (part.astype(np.float64) for part in (rows.share, rows.more_low, rows.more_high))
    mass = share * n + below + above
    even, odd = below + above, above - below
    shift = ratio(odd * half, mass, 0.0)  # of the mean from the bar's middle
    two = share * n * (n * n - 1) / 12 + even * half**2
    three = odd * half**3
    four = share * n * (n * n - 1) * (3 * n * n - 7) / 240 + even * half**4
    middle = (rows.low - rows.low[np.arange(len(half)) - grid.column]) + half
    return Moments(
        mass=mass,
        mean=middle + shift,
        second=two - mass * shift**2,
        third=three - 3 * shift * two + 2 * mass * shift**3,
        fourth=four - 4 * shift * three + 6 * shift**2 * two - 3 * mass * shift**4,
    )


def sums_so_far(grid: Grid, one: Moments) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mass and the sums of second, third and fourth powers about the mean, of all bars so far, (bars,)."""
    mass = grid.running(one.mass, np.add)
    before = np.where(grid.column == 0, 0.0, _previous(mass))
    origin = one.mean[grid.first_above_zero(one.mass)]
    mean = ratio(grid.running(one.mass * (one.mean - origin), np.add), mass, 0.0)
    away = np.where((before == 0) | (one.mass == 0), 0.0, one.mean - origin - _previous(mean))
    a, b = ratio(before, mass, 0.0), ratio(one.mass, mass, 0.0)  # shares of the bars before and of this one
    joint = before * b * away**2
    second = grid.running(one.second + joint, np.add)
    two = np.where(grid.column == 0, 0.0, _previous(second))
    third = grid.running(one.third + joint * away * (a - b) + 3 * away * (a * one.second - b * two), np.add)
    three = np.where(grid.column == 0, 0.0, _previous(third))
    grown = joint * away**2 * (a * a - a * b + b * b) + 6 * away**2 * (a * a * one.second + b * b * two)
    fourth = grid.running(one.fourth + grown + 4 * away * (a * one.third - b * three), np.add)
    return mass, second, third, fourth


def _previous(values: Floats) -> Floats:
    return np.concatenate([values[:1], values[:-1]])
