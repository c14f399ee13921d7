"""Levels of segments of sessions equal those of the rows they are made of."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, CONVENTIONS, assert_same, dense_sessions
from tests.left_out import examples
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles import developing, segments, zones
from trainer.data.profiles.developing import numpy_levels
from trainer.data.profiles.profile import BarRows


@given(
    bars=BARS,
    c=CONVENTIONS,
    cut=st.integers(0, 10),
    span=st.integers(1, 9),
    cells=st.sampled_from([1, 40, 400]),
    scale=st.sampled_from([1, 1, 37]),
)
@settings(deadline=None, max_examples=examples(400))
def test_segment_levels_for_any_span_and_batch_equal_those_of_rows(
    bars: list[tuple[int, int, int, int]], c: ProfileConventions, cut: int, span: int, cells: int, scale: int
) -> None:
    rows, starts, c = dense_sessions(bars, c, cut, scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(developing, "MANY_ROWS", 10**9)
        patch.setattr(segments, "span_of", lambda bars: span)
        for module in (segments, zones):
            patch.setattr(module, "BATCH_CELLS", cells)
        assert_same(segments.segment_levels(rows, starts, c), numpy_levels(rows, starts, c))


@pytest.mark.parametrize(("poc_tie", "expected"), [("middle", 2), ("middle_upper", 8), ("low", 2), ("high", 8)])
def test_segment_levels_of_two_peaks_in_one_zone_follow_the_tie_rule(
    monkeypatch: pytest.MonkeyPatch, poc_tie: Literal["middle", "middle_upper", "low", "high"], expected: int
) -> None:
    low, high = np.array([0, 2, 8, 0, 0, 0]), np.array([10, 2, 8, 10, 10, 10])
    none = np.zeros(6, np.int64)
    rows = BarRows(low=low, high=high, share=np.array([1, 4, 4, 1, 0, 1]), more_low=none, more_high=none)
    monkeypatch.setattr(segments, "span_of", lambda bars: 3)
    levels = segments.segment_levels(rows, np.array([0]), ProfileConventions(poc_tie=poc_tie))
    assert levels.poc[2:].tolist() == [expected] * 4
