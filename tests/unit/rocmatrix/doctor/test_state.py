"""Checks of a card's state: its table of figures."""

import pytest

from rocmatrix.doctor.state import throttled_by
from tests.fixtures import machines


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
