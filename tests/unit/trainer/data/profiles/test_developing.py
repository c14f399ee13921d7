"""Developing profiles do not depend on tiles, gaps or rounding."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, CONVENTIONS, arrays, assert_same, long_sessions
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles import developing
from trainer.data.profiles.developing import developing_levels, numpy_levels
from trainer.data.profiles.profile import bar_rows
from trainer.runtime.errors import TrainerError


@given(bars=BARS, c=CONVENTIONS, cells=st.integers(1, 400))
@settings(deadline=None, max_examples=60)
def test_tile_size_changes_no_profile(bars: list[tuple[int, int, int, int]], c: ProfileConventions, cells: int) -> None:
    rows, starts = bar_rows(*arrays(bars), c), np.array([0])
    one = numpy_levels(rows, starts, c)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(developing, "TILE_CELLS", cells)
        other = numpy_levels(rows, starts, c)
    assert all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in vars(one))


def test_price_far_from_all_others_is_refused_not_computed() -> None:
    low, high = np.array([50.0, 2e6]), np.array([50.0, 2e6])
    c = ProfileConventions()
    with pytest.raises(TrainerError, match="RM572") as caught:
        developing_levels(bar_rows(low, high, high, np.ones(2), c), np.array([0]), c)
    assert "--row-ticks 1000 times the present" in caught.value.next  # 8 million rows of a quarter


@pytest.mark.parametrize("allocation", ["uniform", "proportional"])
@pytest.mark.parametrize(("row_ticks", "most"), [(1, 3), (7, 2000)])  # few volumes: many rows tie
def test_segment_levels_of_long_sessions_with_gaps_equal_those_of_rows(
    monkeypatch: pytest.MonkeyPatch, allocation: Literal["uniform", "proportional"], row_ticks: int, most: int
) -> None:
    rows, starts, c = long_sessions(allocation, row_ticks, most)
    fast = numpy_levels(rows, starts, c)
    monkeypatch.setattr(developing, "MANY_ROWS", 10**9)
    assert_same(fast, numpy_levels(rows, starts, c))
