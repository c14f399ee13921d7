"""The same levels as the package MarketProfile 0.2.0, under its conventions, on the same bars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.later import imported_later
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.developing import developing_levels
from trainer.data.profiles.profile import bar_rows, row_centre, session_levels

pandas = imported_later("pandas", "MarketProfile needs pandas; both are for tests alone")

TICK = 0.25
THEIRS = ProfileConventions(
    tick=TICK,
    allocation="close",
    rounding="ceil",
    rows="occupied",
    poc_tie="middle_upper",
    value_tie="up",
    reach="more",
)
# A volume of zero makes their loop add None; a share of exactly 70 % depends on their float, so totals end in 1.
BARS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), min_size=2, max_size=40)


def theirs(close: np.ndarray, volume: np.ndarray, high_of_row: int) -> tuple[float, float, float]:
    times = pandas.date_range("2026-01-05 09:30", periods=len(close), freq="min")
    frame = pandas.DataFrame(
        {"Open": close, "High": close, "Low": close, "Close": close, "Volume": volume}, index=times
    )
    package = imported_later("market_profile", "the package MarketProfile is for tests alone")  # 4 s
    profile = package.MarketProfile(frame, tick_size=TICK, prices_per_row=high_of_row)
    found = profile[times[0] : times[-1]]
    low, high = found.value_area
    return found.poc_price, high, low


def ours(levels: object, bar: int, c: ProfileConventions) -> tuple[float, ...]:
    rows = np.array([getattr(levels, name)[bar] for name in ("poc", "high", "low")])
    top = row_centre(rows, c) + (c.row_ticks - 1) / 2  # they name a row by its upper price
    return tuple((top * c.tick).tolist())


@given(bars=BARS, height=st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_levels_are_equal_under_its_conventions(bars: list[tuple[int, int]], height: int) -> None:
    c = ProfileConventions(**{**vars(THEIRS), "row_ticks": height})
    close = 100 + np.array([tick for tick, _ in bars]) * TICK
    volume = np.array([contracts for _, contracts in bars], dtype=float)
    volume[-1] += (1 - volume.sum()) % 10
    rows, starts = bar_rows(close, close, close, volume, c), np.array([0])
    expected = pytest.approx(theirs(close, volume, height))
    assert ours(session_levels(rows, starts, c), 0, c) == expected
    assert ours(developing_levels(rows, starts, c), len(bars) - 1, c) == expected
