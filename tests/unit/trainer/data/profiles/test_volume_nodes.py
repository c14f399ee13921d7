"""Nodes of growing profiles equal those counted bin by bin from the bars themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, arrays
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.profile import MOST_ROWS, bar_rows
from trainer.data.profiles.volume_nodes import BINS, Nodes, node_height, session_nodes

Row = tuple[int, int, int, int]


def counted(bars: list[Row], height: int, c: ProfileConventions) -> tuple[float, float, float, float]:
    """Return the four figures of the last bar's profile, from a dictionary of bins and by comparing neighbours."""
    volumes: dict[int, int] = {}
    for low, body, top, volume in bars:
        rows = range((100 + low) // c.row_ticks, (100 + low + body + top) // c.row_ticks + 1)
        for row in rows:
            volumes[row // height] = volumes.get(row // height, 0) + volume * 2**20 // len(rows)
    first, last = min(volumes), max(volumes)
    mean = sum(volumes.values()) / (last - first + 1)

    def of(number: int) -> int:
        return volumes.get(number, 0)

    def centre(number: int) -> float:
        return c.row_ticks * (number * height + (height - 1) / 2) + (c.row_ticks - 1) / 2

    inner = range(first, last + 1)
    high = [k for k in inner if of(k) > of(k - 1) and of(k) >= of(k + 1) and of(k) >= mean]
    low_nodes = [k for k in inner if of(k) < of(k - 1) and of(k) <= of(k + 1) and of(k) <= mean]
    low_nodes += [first - 1, last + 1]
    close = 100 + bars[-1][0] + bars[-1][1]
    own = min(max(close // c.row_ticks // height, first), last)
    nearest = min((centre(k) for k in high), key=lambda at: (abs(at - close), -at), default=float(close))
    above, below = min(k for k in low_nodes if k > own), max(k for k in low_nodes if k < own)
    return len(high), close - nearest, centre(above) - close, close - centre(below)


@given(bars=BARS, height=st.integers(1, 5), row_ticks=st.integers(1, 3), cut=st.integers(0, 40))
@settings(deadline=None, max_examples=150)
def test_nodes_of_each_bar_equal_those_counted_bin_by_bin(
    bars: list[Row], height: int, row_ticks: int, cut: int
) -> None:
    c = ProfileConventions(row_ticks=row_ticks)
    second = min(cut, len(bars) - 1)
    starts = [0, second] if second else [0]
    heights = [height, height + 1][: len(starts)]
    close = np.array([100.0 + low + body for low, body, _, _ in bars])
    found = session_nodes(bar_rows(*arrays(bars), c), np.array(starts), close, np.array(heights), c)
    for bar in range(len(bars)):
        session = int(second > 0 and bar >= second)
        expected = counted(bars[starts[session] : bar + 1], heights[session], c)
        assert (found.count[bar], found.nearest_high[bar], found.low_above[bar], found.low_below[bar]) == expected


def test_height_is_a_part_of_the_range_and_at_least_a_row() -> None:
    c = ProfileConventions(row_ticks=2)
    heights = node_height(np.array([math.nan, 0.0, 1.0, 2.0 * BINS * 7, 2.0 * BINS * 7.6]), c)
    assert heights.tolist() == [MOST_ROWS, 1, 1, 7, 8]


def test_profile_in_one_bin_has_that_bin_as_its_high_node_and_none_beyond_it() -> None:
    c = ProfileConventions()
    rows = bar_rows(np.array([25.0]), np.array([26.0]), np.array([25.5]), np.array([9.0]), c)
    found = session_nodes(rows, np.array([0]), np.array([102.0]), np.array([1000]), c)
    assert (found.count[0], found.nearest_high[0]) == (1, 102 - 499.5)
    assert (found.low_above[0], found.low_below[0]) == (1499.5 - 102, 102 + 500.5)


def test_parts_are_joined_in_order() -> None:
    parts = [Nodes(**{name: np.array([number]) for name in Nodes.__dataclass_fields__}) for number in (1.0, 2.0)]
    assert all(values.tolist() == [1.0, 2.0] for values in vars(Nodes.joined(parts)).values())


@pytest.mark.parametrize("volume", [0, 1])
def test_bars_without_volume_have_no_high_node(volume: int) -> None:
    c = ProfileConventions()
    rows = bar_rows(np.array([25.0, 30.0]), np.array([25.0, 30.0]), np.array([25.0, 30.0]), np.full(2, volume * 1.0), c)
    found = session_nodes(rows, np.array([0]), np.array([100.0, 120.0]), np.array([1]), c)
    assert found.count.tolist() == [volume, 2 * volume]


def test_upper_of_two_high_nodes_that_are_equally_near_counts() -> None:
    c = ProfileConventions()
    price, volume = np.array([25.0, 26.0, 25.5]), np.array([4.0, 4.0, 0.0])
    found = session_nodes(bar_rows(price, price, price, volume, c), np.array([0]), price * 4, np.array([1]), c)
    assert (found.count[2], found.nearest_high[2]) == (2, -2.0)
