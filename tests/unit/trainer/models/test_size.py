"""Widths scaled down alike until a network is small enough."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trainer.models.size import shrunk

WIDTHS = st.lists(st.integers(1, 300), min_size=2, max_size=5)


def count(widths):
    return sum(one * two + two for one, two in pairwise(widths))


@given(WIDTHS, st.integers(1, 10**6))
def test_shrunk_widths_fit_or_are_all_one(widths, most):
    found = shrunk(widths, most, count)
    assert (found[0], found[-1], len(found)) == (widths[0], widths[-1], len(widths))
    assert all(1 <= new <= old for new, old in zip(found, widths, strict=True))
    assert count(found) <= most or set(found[1:-1]) <= {1}


@given(WIDTHS)
def test_widths_that_fit_lose_next_to_nothing(widths):
    found = shrunk(widths, count(widths), count)
    assert all(new >= old - 1 for new, old in zip(found, widths, strict=True))
