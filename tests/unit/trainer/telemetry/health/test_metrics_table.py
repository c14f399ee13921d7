"""A card's table of figures, by its layout."""

from __future__ import annotations

import pytest

from tests.fixtures.health import listing, table
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


@pytest.mark.parametrize(
    ("before", "after", "seconds", "narrow", "joules"),
    [
        (10.0, 60000.0, 65.0, True, 59990.0),  # no card fills 32 bits in this time
        (10.0, 60000.0, 66.0, True, None),  # it may have started anew meanwhile
        (10.0, 60000.0, 3600.0, False, 59990.0),
        (10.0, 70000.0, 3600.0, True, 69990.0),  # more than 32 bits hold: a counter of 64
        (60000.0, 10.0, 65.0, True, None),
        (10.0, 10.0, 65.0, True, None),  # some cards return one figure until they are started anew
        (None, 10.0, 65.0, False, None),
        (10.0, 10.0 + 4000.0 * 110, 100.0, False, 440000.0),
        (10.0, 11.0 + 4000.0 * 110, 100.0, False, None),  # no card draws as much
    ],
)
def test_energy_of_a_counter_that_starts_anew_is_unknown(
    before: float | None, after: float, seconds: float, narrow: bool, joules: float | None
) -> None:
    assert metrics_table.used(before, after, seconds, narrow=narrow) == joules


@pytest.mark.parametrize(("kind", "joules"), [((1, 3), None), ((1, 7), 65535.999985)])
def test_energy_of_all_ones_in_32_bits_is_not_reported_by_cards_that_count_so(
    kind: tuple[int, int], joules: float | None
) -> None:
    found = metrics_table.energy(table(kind=kind, energy=(1 << 32) - 1))
    assert found == (joules if joules is None else pytest.approx(joules))


ONES = (1 << 64) - 1
LIST = (
    (0, "H", (61,)),
    (7, "Q", (3 << 16,)),
    (9, "I", (1000,)),
    (10, "I", (0,)),
    (11, "I", (250,)),
    (29, "Q", (1, 2, 3, 4, 5, 6, 7, 8)),  # one for each XGMI link
    (25, "Q", (6,)),
)


def test_table_that_lists_its_fields_is_read_by_their_ids() -> None:
    made = listing(*LIST)
    assert metrics_table.energy(made) == 3.0
    assert metrics_table.replays(made) == 6
    assert metrics_table.cycles(made) == {"all": 1000, "prochot": 0, "power": 250}


@pytest.mark.parametrize(
    "broken",
    [
        listing(),
        listing((7, "Q", (ONES,)), (25, "Q", (ONES,))),
        listing(*LIST)[:8] + listing(*LIST)[8:40].ljust(len(listing(*LIST)) - 8, b"\xff"),  # a type that is none
        listing(*LIST)[:4] + b"\xff\xff\xff\x7f" + listing(*LIST)[8:],  # more fields than it holds
        listing(*LIST)[:4] + b"\xff\xff\xff\xff" + listing(*LIST)[8:],
        listing((7, "Q", ())),
        b"\x06\x00\x01\x09\x00\x00",
    ],
)
def test_list_of_fields_that_does_not_fit_its_table_is_unknown(broken: bytes) -> None:
    assert metrics_table.version(broken) == (1, 9)
    assert metrics_table.energy(broken) is None
    assert metrics_table.replays(broken) is None
    assert metrics_table.cycles(broken) == {}


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        (
            (28, 1868, 92382, 257, 1795, 0, 0),
            (28, 1870, 92400, 257, 1795, 0, 0),
            {"sustained power": 2, "fast power": 18},
        ),
        ((28, 1868, 92382, 257, 1795, 0, 0), (0, 1, 1, 0, 0, 0, 0), {}),  # it started anew
        ((0xFFFFFFFF,) * 7, (0xFFFFFFFF,) * 7, {}),
    ],
)
def test_limits_of_a_processors_graphics_are_counted_without_a_total(
    before: tuple[int, ...], after: tuple[int, ...], held: dict[str, int]
) -> None:
    first, second = (table(kind=(3, 0), limits=limits) for limits in (before, after))
    assert metrics_table.held(metrics_table.limits(first), metrics_table.limits(second)) == held
    assert metrics_table.limits(second[:-40]) == {}
    assert metrics_table.energy(first) is None
