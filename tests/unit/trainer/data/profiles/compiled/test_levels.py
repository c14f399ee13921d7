"""The compiled loop gives the levels that numpy does, for every convention it takes and every kind of session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, CONVENTIONS, assert_same, dense_sessions, long_sessions
from tests.left_out import examples
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.compiled import levels
from trainer.data.profiles.compiled.levels import compiled_levels
from trainer.data.profiles.compiled.library import loop
from trainer.data.profiles.developing import numpy_levels
from trainer.data.profiles.profile import BarRows, bar_rows
from trainer.runtime.errors import TrainerError


@pytest.fixture(scope="module")
def compiled() -> Callable[..., None]:
    found = loop()
    if found is None:
        pytest.skip("no C compiler is installed here, or no folder may hold programs")
    return found


@given(
    bars=BARS,
    c=CONVENTIONS,
    cut=st.integers(0, 10),
    scale=st.sampled_from([1, 1, 37]),
    few=st.sampled_from([0, 4, 10**6]),
)
@settings(deadline=None, max_examples=examples(400))
def test_compiled_levels_of_any_bars_equal_those_of_numpy(
    compiled: Callable[..., None],
    bars: list[tuple[int, int, int, int]],
    c: ProfileConventions,
    cut: int,
    scale: int,
    few: int,
) -> None:
    rows, starts, c = dense_sessions(bars, c, cut, scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "FEW_ROWS", few)
        assert_same(compiled_levels(rows, starts, c, compiled), numpy_levels(rows, starts, c))


@pytest.mark.parametrize("allocation", ["uniform", "proportional"])
@pytest.mark.parametrize(("row_ticks", "most"), [(1, 3), (7, 2000)])  # few volumes: many rows tie
def test_compiled_levels_of_long_sessions_with_gaps_equal_those_of_numpy(
    compiled: Callable[..., None], allocation: Literal["uniform", "proportional"], row_ticks: int, most: int
) -> None:
    rows, starts, c = long_sessions(allocation, row_ticks, most)
    assert_same(compiled_levels(rows, starts, c, compiled), numpy_levels(rows, starts, c))


def test_compiled_levels_of_volumes_near_the_limit_equal_those_of_numpy(compiled: Callable[..., None]) -> None:
    none = np.zeros(3, np.int64)
    low, high = np.array([0, 5, 2]), np.array([9, 5, 60_000])
    share = np.array([2**56, 2**59, 2**44])
    rows = BarRows(low=low, high=high, share=share, more_low=none, more_high=none)
    for value_share in (1, 7000, 10_000):
        c = ProfileConventions(value_share=value_share)
        assert_same(compiled_levels(rows, np.array([0]), c, compiled), numpy_levels(rows, np.array([0]), c))


def test_compiled_levels_of_a_part_of_longer_arrays_read_that_part_alone(compiled: Callable[..., None]) -> None:
    numbers = np.arange(40, dtype=np.int64)
    every = BarRows(
        low=numbers % 7, high=numbers % 7 + 3, share=numbers + 1, more_low=0 * numbers, more_high=0 * numbers
    )
    part, other = (BarRows(**{n: v[10:40:3] for n, v in vars(every).items()}) for _ in range(2))
    copied = BarRows(**{name: values.copy() for name, values in vars(other).items()})
    c, starts = ProfileConventions(), np.array([0, 4])
    assert_same(compiled_levels(part, starts, c, compiled), numpy_levels(copied, starts, c))


def test_compiled_levels_of_more_rows_than_a_market_needs_are_refused(compiled: Callable[..., None]) -> None:
    prices = np.array([50.0, 2e6])
    rows = bar_rows(prices, prices, prices, np.ones(2), ProfileConventions())
    with pytest.raises(TrainerError, match="RM572"):
        compiled_levels(rows, np.array([0]), ProfileConventions(), compiled)
