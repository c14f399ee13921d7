"""Profiles against an oracle that loops over bars and rows, for every convention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, CONVENTIONS, arrays, oracle
from tests.left_out import examples
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.developing import developing_levels
from trainer.data.profiles.profile import BarRows, Levels, bar_rows, difference_profile, session_levels
from trainer.runtime.errors import TrainerError


def found(levels: Levels, bar: int) -> tuple[int, ...]:
    return tuple(int(getattr(levels, name)[bar]) for name in ("poc", "high", "low", "peak", "total"))


@given(bars=BARS, c=CONVENTIONS, cut=st.integers(0, 10))
@settings(deadline=None, max_examples=examples(300))
def test_developing_and_finished_profiles_are_the_oracles(
    bars: list[tuple[int, int, int, int]], c: ProfileConventions, cut: int
) -> None:
    cut = min(cut, len(bars) - 1)
    starts = np.array([0, cut] if cut else [0])
    rows = bar_rows(*arrays(bars), c)
    growing, finished = developing_levels(rows, starts, c), session_levels(rows, starts, c)
    for session, (start, end) in enumerate(zip(starts, [*starts[1:], len(bars)], strict=True)):
        for bar in range(start, end):
            assert found(growing, bar) == oracle(bars[start : bar + 1], c)
        assert found(finished, session) == oracle(bars[start:end], c)


@given(bars=BARS, order=st.randoms(use_true_random=False))
def test_order_of_bars_changes_no_bit_of_a_profile(bars: list[tuple[int, int, int, int]], order: object) -> None:
    c = ProfileConventions()
    rows = bar_rows(*arrays(bars), c)
    places = list(range(len(bars)))
    order.shuffle(places)  # type: ignore[attr-defined]
    mixed = BarRows(**{name: values[places] for name, values in vars(rows).items()})
    first, height = int(rows.low.min()), int(rows.high.max() - rows.low.min()) + 1
    assert difference_profile(rows, first, height).tobytes() == difference_profile(mixed, first, height).tobytes()


def test_worked_example_equals_the_computation_by_hand() -> None:
    """Six rows of 1, 3, 6, 4, 2, 1 contracts at their closes: POC 6; 70 % of 17 is 11.9; 6 + 4 + 3 reaches it."""
    c = ProfileConventions(tick=1.0, allocation="close")
    close = np.arange(6.0) + 50
    levels = session_levels(bar_rows(close, close, close, np.array([1.0, 3, 6, 4, 2, 1]), c), np.array([0]), c)
    assert found(levels, 0)[:3] == (52, 53, 51)
    pair = replace(c, expansion="two")  # 4 + 2 above, 3 + 1 below: 6 + 6 reaches 11.9 at once
    levels = session_levels(bar_rows(close, close, close, np.array([1.0, 3, 6, 4, 2, 1]), c), np.array([0]), pair)
    assert found(levels, 0)[:3] == (52, 54, 52)


def test_volumes_that_cannot_be_counted_exactly_are_refused() -> None:
    close = np.full(3, 50.0)
    with pytest.raises(TrainerError, match="RM571"):
        bar_rows(close, close, close, np.full(3, 1e12), ProfileConventions())
