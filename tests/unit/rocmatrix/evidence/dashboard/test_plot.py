"""A figure over time as coordinates."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.evidence.dashboard.plot import HEIGHT, WIDTH, plot
from tests.fixtures.evidence import at


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.floats(-1e9, 1e9)), min_size=1, max_size=20, unique_by=lambda m: m[0])
)
def test_larger_values_are_drawn_higher_and_later_ones_further_right(measured):
    drawn = plot("x", "s", [(at(hours), value) for hours, value in measured])
    for point in drawn.points:
        assert 0 <= point.x <= WIDTH
        assert 0 <= point.y <= HEIGHT
    for a, b in pairwise(drawn.points):
        assert a.x <= b.x
        assert (b.y <= a.y) if b.value > a.value else (b.y >= a.y)


def test_plot_without_measurements_is_refused():
    with pytest.raises(ValueError, match="nothing"):
        plot("x", "s", [])
