"""Levels of other programs under their own conventions, recomputed from their published rules on SYNTHETIC bars.

numpy.histogram stands for the profiles that bin closes with it; the other rule spreads a bar over the bins it overlaps,
by the part of its range in each, as TradingView describes its "Volume Profile Visible Range" from lower bars.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.profile import bar_rows, difference_profile, level, row_edge, session_levels

BARS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=40)
TICK = 0.5


def arrays(bars: list[tuple[int, int, int]]) -> tuple[np.ndarray, ...]:
    low, height, volume = np.array(bars, dtype=float).T
    return (200 + low) * TICK, (200 + low + height) * TICK, volume


def profile(bars: list[tuple[int, int, int]], c: ProfileConventions) -> tuple[np.ndarray, np.ndarray]:
    low, high, volume = arrays(bars)
    rows = bar_rows(low, high, high, volume, c)
    first, count = int(rows.low.min()), int(rows.high.max() - rows.low.min()) + 1
    return row_edge(np.arange(first, first + count), c) * c.tick, difference_profile(rows, first, count) / 2**20


@given(bars=BARS, height=st.integers(1, 7), origin=st.integers(0, 6))
@settings(deadline=None, max_examples=80)
def test_profile_of_closes_is_the_histogram_of_numpy(
    bars: list[tuple[int, int, int]], height: int, origin: int
) -> None:
    c = ProfileConventions(tick=TICK, row_ticks=height, row_origin=origin, allocation="close", levels="low")
    edges, volume = profile(bars, c)
    _, high, weight = arrays(bars)
    bins = np.append(edges, edges[-1] + height * TICK)
    expected = np.histogram(high, np.append(bins[:-1], bins[-1] - TICK / 2), weights=weight)[0]
    np.testing.assert_array_equal(volume, expected)
    rows = bar_rows(high, high, high, weight, c)
    levels = session_levels(rows, np.array([0]), ProfileConventions(**{**vars(c), "poc_tie": "low"}))
    assert level(levels.poc, "poc", c)[0] * TICK == edges[np.argmax(expected)]


@given(bars=BARS, height=st.integers(1, 7), origin=st.integers(0, 6))
@settings(deadline=None, max_examples=80)
def test_proportional_profile_is_overlap_times_volume(
    bars: list[tuple[int, int, int]], height: int, origin: int
) -> None:
    c = ProfileConventions(tick=TICK, row_ticks=height, row_origin=origin, allocation="proportional", levels="outer")
    edges, volume = profile(bars, c)
    expected = np.zeros(len(edges))
    for low, high, weight in zip(*arrays(bars), strict=True):
        if low == high:
            expected[np.searchsorted(edges, low, "right") - 1] += weight
        else:
            overlap = np.clip(np.minimum(edges + height * TICK, high) - np.maximum(edges, low), 0, None)
            expected += weight * overlap / (high - low)
    np.testing.assert_allclose(volume, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [("centre", (960.125, 960.125)), ("low", (960.0, 960.0)), ("high", (960.25, 960.25)), ("outer", (960.25, 960.0))],
)
def test_level_is_where_the_convention_has_it(levels: str, expected: tuple[float, float]) -> None:
    c = ProfileConventions(tick=0.25, row_ticks=2, levels=levels)  # type: ignore[arg-type]
    row = np.array([1920])
    assert (level(row, "high", c)[0] * 0.25, level(row, "low", c)[0] * 0.25) == expected
    continuous = ProfileConventions(**{**vars(c), "allocation": "proportional", "levels": "outer"})
    assert level(row, "high", continuous)[0] * 0.25 == 960.5
