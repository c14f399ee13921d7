"""Profiles of finished sessions and their composites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, CONVENTIONS, arrays, oracle
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles import finished
from trainer.data.profiles.finished import composite_poc, finished_profiles
from trainer.data.profiles.profile import bar_rows


@given(bars=BARS, c=CONVENTIONS, cut=st.integers(1, 10))
@settings(deadline=None, max_examples=150)
def test_composite_poc_of_segments_equals_that_of_rows(
    bars: list[tuple[int, int, int, int]], c: ProfileConventions, cut: int
) -> None:
    c = replace(c, rows="dense")
    rows, starts = bar_rows(*arrays(bars), c), np.array([0, cut] if cut < len(bars) else [0])
    of_rows = finished_profiles(rows, starts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finished, "FEW_ROWS", 0)
        of_segments = finished_profiles(rows, starts)
    assert all(part.of_rows for part in of_rows)
    expected = oracle(bars, c)[0]
    for parts in (of_rows, of_segments, [of_rows[0], *of_segments[1:]]):
        assert composite_poc(parts, c) == expected
