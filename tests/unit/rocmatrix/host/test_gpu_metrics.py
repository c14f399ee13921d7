"""Throttling by `gpu_metrics`: a status by its layout, and cycles counted between two tables."""

import struct

import pytest

from rocmatrix.host.gpu_metrics import CYCLES, counts, throttled_between, throttled_by
from tests.fixtures import machines
from tests.fixtures.health import listing, table


def counted(cycles, *causes, version=(1, 7)):
    """Return a table that counts cycles: those in all, then the throttled ones of each cause."""
    table = bytearray(machines.metrics(version=version, size=256))
    struct.pack_into("<6I", table, CYCLES[version], cycles, *causes)
    return bytes(table)


@pytest.mark.parametrize(
    ("table", "cause"),
    [
        (machines.metrics(), ()),
        (machines.metrics(status=1 << 20 | 1 << 47), ("current", "temperature")),
        (machines.metrics(status=1 << 57), ("other",)),
        (machines.metrics(status=(1 << 64) - 1), None),
        (machines.metrics(version=(1, 4), status=5), ("status 0x5 of this chip",)),
        (machines.metrics(version=(1, 4)), ()),
        (machines.metrics(version=(2, 1), status=2), ("status 0x2 of this chip",)),
        (machines.metrics(version=(2, 2), status=1 << 33), ("temperature",)),
        (machines.metrics(version=(1, 4), status=(1 << 32) - 1), None),
        (bytes.fromhex("3c000103") + bytes(56), None),
        (machines.metrics()[:-1], None),
        (b"", None),
        (b"\xff" * 4, None),
    ],
)
def test_metrics_table_is_read_by_its_format_and_length(table, cause):
    assert throttled_by(table) == cause


@pytest.mark.parametrize("version", [(1, 6), (1, 7), (1, 8)])
@pytest.mark.parametrize(
    ("before", "after", "causes"),
    [
        ((1000, 0, 0, 0, 0, 0), (2000, 0, 250, 0, 10, 0), ("power 25%", "regulator temperature 1%")),
        ((1000, 0, 0, 0, 0, 0), (2000, 0, 9, 0, 0, 0), ()),
        ((1000, 0, 0, 0, 0, 0), (1000, 0, 0, 0, 0, 0), None),  # no time went by
        ((1000, 0, 5, 0, 0, 0), (2000, 0, 4, 0, 0, 0), None),  # it began anew
        ((1000, 0, 0, 0, 0, 0), (1010, 0, 90, 0, 0, 0), None),  # more than all of the time
    ],
)
def test_throttling_is_the_share_of_the_cycles_between_two_tables(version, before, after, causes):
    tables = [counted(*cycles, version=version) for cycles in (before, after)]
    assert throttled_between(*tables) == causes


def test_cycles_that_are_not_reported_are_unknown():
    ones = (1 << 32) - 1
    tables = [counted(cycles, ones, ones, ones, ones, ones) for cycles in (1, 2)]
    assert throttled_between(*tables) is None
    assert throttled_between(machines.metrics(), machines.metrics()) is None


def test_throttling_is_read_from_tables_that_list_their_fields():
    first = listing((7, "Q", (1,)), (9, "I", (1000,)), (10, "I", (0,)), (11, "I", (100,)), (29, "Q", (1, 2)))
    later = listing((7, "Q", (9,)), (9, "I", (2000,)), (10, "I", (5,)), (11, "I", (350,)), (29, "Q", (3, 4)))
    assert throttled_between(first, later) == ("power 25%",)
    assert throttled_between(first, first) is None
    assert throttled_between(first, later[:4] + b"\xff\xff\xff\x7f" + later[8:]) is None


ONES = (1 << 32) - 1


@pytest.mark.parametrize(
    ("before", "after", "causes"),
    [
        ((28, 1868, 92382, 257, 1795, 0, 0), (28, 1868, 92400, 257, 1795, 0, 3), ("fast power", "SoC temperature")),
        ((28, 1868, 92382, 257, 1795, 0, 0), (28, 1868, 92382, 257, 1795, 0, 0), ()),
        ((28, 1868, 92382, 257, 1795, 0, 0), (0, 0, 4, 0, 0, 0, 0), None),  # it began anew
        ((0, 0, 0, ONES, 0, 0, 0), (0, 1, 0, ONES, 0, 0, 0), ("sustained power",)),
        ((ONES,) * 7, (ONES,) * 7, None),
    ],
)
def test_limits_of_strix_point_and_strix_halo_are_named_by_two_tables(before, after, causes):
    assert throttled_between(*(table(kind=(3, 0), limits=counted) for counted in (before, after))) == causes


@pytest.mark.parametrize(
    ("made", "counting"),
    [
        (table(kind=(3, 0), limits=(0,) * 7), True),
        (table(kind=(3, 0), limits=(ONES,) * 7), False),
        (table(kind=(3, 0), limits=(0,) * 7)[:-80], False),  # cut short
        (table(kind=(1, 7), cycles=(1, 0, 0, 0, 0, 0)), True),
        (table(kind=(1, 3)), False),
        (b"", False),
    ],
)
def test_table_counts_throttled_time_only_where_its_layout_has_such_counters(made, counting):
    assert counts(made) is counting
