"""Prices in ticks, rounded once, so that two equal prices are equal whatever arithmetic they came from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def to_ticks(price: Floats, tick: float) -> Integers:
    """Return prices in whole ticks, to the nearest."""
    return np.rint(price / tick).astype(np.int64)


def whole_ticks(price: Floats, tick: float) -> Floats:
    """Return prices in whole ticks, as floats, for comparison with levels of a profile: its rows are whole ticks."""
    return np.rint(price / tick)


def in_ticks(price: Floats, tick: float) -> Floats:
    """Return prices in ticks: whole where they are a whole number but for rounding, else as they are.

    Differences and sums of whole numbers are exact, so what is equal on paper is equal here.
    """
    steps = price / tick
    return np.where(_off(steps), steps, np.rint(steps))


def off_tick(price: Floats, tick: float) -> Booleans:
    """Return which prices are no whole number of ticks."""
    return _off(price / tick)


def _off(steps: Floats) -> Booleans:
    return np.abs(steps - np.rint(steps)) > 1e-6 * np.maximum(1.0, np.abs(steps) * 1e-3)
