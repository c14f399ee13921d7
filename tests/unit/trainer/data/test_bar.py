"""Bars are read-only columns of one length, picked and joined together."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.bar import NUMBERS, Bars, joined


def bars(count, *, vix=True):
    columns = {name: np.arange(count, dtype=np.float64) + place for place, name in enumerate(NUMBERS)}
    date = np.datetime64("2025-01-01", "s") + np.arange(count).astype("m8[s]")
    return Bars(date=date, **columns | ({} if vix else {"vix_close": None}))


def same(one, other):
    return all(np.array_equal(value, vars(other)[name]) for name, value in vars(one).items() if value is not None)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.booleans())
def test_joined_parts_are_the_whole_they_were_cut_from(lengths, vix):
    whole = bars(sum(lengths), vix=vix)
    ends = np.cumsum([0, *lengths])
    parts = [whole[int(start) : int(end)] for start, end in pairwise(ends)]
    assert same(joined(parts), whole)
    assert (joined(parts).vix_close is not None) == vix


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_bars_chosen_by_truth_are_those_at_their_places(chosen):
    rows = np.array(chosen)
    whole = bars(len(chosen))
    assert same(whole.where(rows), whole.at(np.flatnonzero(rows)))
    assert len(whole.where(rows)) == sum(chosen)


def test_column_of_bars_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        bars(2).close[0] = 1.0
