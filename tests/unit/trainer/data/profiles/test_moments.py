"""Moments of a bar from closed forms against those of its rows, counted one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from trainer.data.profiles.moments import bar_moments
from trainer.data.profiles.profile import BarRows


def bars(*rows: tuple[int, int, int, int, int]) -> BarRows:
    """Bars of (low, high, share, more at the low, more at the high)."""
    low, high, share, more_low, more_high = (np.array(each) for each in zip(*rows, strict=True))
    return BarRows(low=low, high=high, share=share, more_low=more_low, more_high=more_high)


BARS = [
    (10, 10, 5, 0, 0),
    (10, 14, 3, 0, 0),
    (7, 12, 2, 4, 1),
    (8, 9, 0, 3, 5),
    (20, 30, 1, 0, -1),
]


@pytest.mark.parametrize("place", range(len(BARS)))
def test_moments_of_a_bar_are_those_of_its_rows(place: int) -> None:
    rows = bars(*BARS)
    grid = SimpleNamespace(column=np.arange(len(BARS)))  # one session: its first bar begins at row 10
    found = bar_moments(rows, grid)  # type: ignore[arg-type]
    low, high, share, more_low, more_high = BARS[place]
    price = np.arange(low, high + 1) - BARS[0][0]
    mass = np.full(len(price), float(share))
    mass[0] += more_low
    mass[-1] += more_high
    mean = (price * mass).sum() / mass.sum()
    assert found.mass[place] == mass.sum()
    assert found.mean[place] == pytest.approx(mean)
    for power, name in ((2, "second"), (3, "third"), (4, "fourth")):
        expected = (mass * (price - mean) ** power).sum()
        assert getattr(found, name)[place] == pytest.approx(expected, abs=1e-9), name


def test_bar_without_volume_has_no_moments_and_a_mean_in_its_middle() -> None:
    found = bar_moments(bars((10, 14, 0, 0, 0)), SimpleNamespace(column=np.zeros(1, np.int64)))  # type: ignore[arg-type]
    assert (found.mass[0], found.mean[0], found.second[0], found.fourth[0]) == (0.0, 2.0, 0.0, 0.0)
