"""A card's table of figures, by its layout."""

from __future__ import annotations

import pytest

from tests.fixtures.health import table
from trainer.telemetry.health import metrics_table


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((100, 0, 10, 0, 0, 0), (100, 0, 10, 0, 0, 0)),  # no cycle passed
        ((100, 0, 10, 0, 0, 0), (50, 0, 2, 0, 0, 0)),  # the counters started anew
        ((100, 0, 10, 0, 0, 0), (200, 0, 500, 0, 0, 0)),  # more throttled cycles than cycles: another layout
        ((0xFFFFFFFF,) * 6, (0xFFFFFFFF,) * 6),  # not reported
    ],
)
def test_residencies_that_cannot_be_are_unknown(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    first, second = (metrics_table.cycles(table(cycles=cycles)) for cycles in (before, after))
    assert metrics_table.throttled(first, second) == {}


@pytest.mark.parametrize(
    ("kind", "joules"), [((1, 3), 2.0), ((1, 6), 2.0), ((1, 7), 2.0), ((1, 8), 2.0), ((2, 4), None), ((9, 9), None)]
)
def test_energy_is_read_from_layouts_that_have_one(kind: tuple[int, int], joules: float | None) -> None:
    assert metrics_table.energy(table(kind=kind, energy=2 << 16)) == joules


def test_energy_that_is_not_reported_is_none() -> None:
    assert metrics_table.energy(table(energy=(1 << 64) - 1)) is None
