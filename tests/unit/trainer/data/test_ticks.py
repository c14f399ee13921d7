"""Prices in whole ticks: equal on paper is equal in memory."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.ticks import in_ticks, off_tick, to_ticks, whole_ticks

TICKS = st.sampled_from([0.01, 0.05, 0.25, 0.1, 1.0, 5.0, 1e-4])
COUNTS = st.integers(1, 10**7)


@given(st.lists(COUNTS, min_size=1, max_size=6), TICKS)
def test_price_of_whole_ticks_is_that_number_of_ticks(counts, tick):
    prices = np.array([float(Fraction(str(tick)) * count) for count in counts])
    assert to_ticks(prices, tick).tolist() == counts
    assert whole_ticks(prices, tick).tolist() == in_ticks(prices, tick).tolist() == [float(count) for count in counts]
    assert not off_tick(prices, tick).any()


@given(COUNTS.filter(lambda count: count < 10**5), TICKS, st.sampled_from([0.25, 0.5, 0.75]))
def test_price_between_ticks_is_kept_as_it_is_and_named(count, tick, part):
    price = np.array([(count + part) * tick])
    assert off_tick(price, tick).all()
    assert in_ticks(price, tick)[0] == pytest.approx(count + part)
    assert abs(to_ticks(price, tick)[0] - (count + part)) <= 0.5
