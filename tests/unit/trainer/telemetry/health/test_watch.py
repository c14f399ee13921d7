"""Two snapshots of a card compared: what rose, fell, is lost or gone, and what stays unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.telemetry.health.watch import CardSnapshot, HealthWatch, compare

BEFORE = CardSnapshot(
    counters={"ras/umc/ce": 3, "aer/rx": 1}, listed=("ras/", "replays"), energy_j=100.0, cycles={"all": 10, "power": 2}
)


def after(**changed: Any) -> CardSnapshot:
    return replace(BEFORE, **changed)


@pytest.mark.parametrize(
    ("counters", "rose", "fell", "known", "summary"),
    [
        ({"ras/umc/ce": 3, "aer/rx": 1}, {}, {}, 2, ""),
        ({"ras/umc/ce": 5, "aer/rx": 1}, {"ras/umc/ce": (3, 5)}, {}, 2, "ras/umc/ce rose from 3 to 5"),
        ({"ras/umc/ce": 3, "aer/rx": 0}, {}, {"aer/rx": (1, 0)}, 2, "aer/rx fell from 1 to 0: it started anew"),
        ({"ras/umc/ce": 3, "replays": 2}, {"replays": (0, 2)}, {}, 2, "replays rose from 0 to 2"),
        ({"ras/umc/ce": 3, "aer/tx": 9}, {}, {}, 1, ""),  # its file could not be read before: unknown
    ],
)
def test_counters_are_compared_where_both_readings_are_known(
    counters: dict[str, int],
    rose: dict[str, tuple[int, int]],
    fell: dict[str, tuple[int, int]],
    known: int,
    summary: str,
) -> None:
    found = compare(BEFORE, after(counters=counters), seconds=1.0)
    assert (found.rose, found.fell, found.known, found.summary()) == (rose, fell, known, summary)
    assert found.moved is bool(summary)


def test_counter_of_ras_that_can_no_longer_be_read_is_lost_and_another_is_unknown() -> None:
    found = compare(BEFORE, after(counters={}), seconds=1.0)
    assert (found.lost, found.known, found.moved) == (("ras/umc/ce",), 0, True)
    assert found.summary() == "ras/umc/ce can no longer be read"


def test_card_that_is_gone_has_no_figures() -> None:
    found = compare(BEFORE, None, seconds=1.0)
    assert (found.gone, found.known, found.energy_j, found.moved) == (True, 0, None, True)
    assert found.summary() == "it is no longer there"


@pytest.mark.parametrize(("layout", "energy"), [(None, 150.0), ((1, 3), None)])
def test_energy_is_unknown_where_the_driver_counts_in_another_layout(
    layout: tuple[int, int] | None, energy: float | None
) -> None:
    found = compare(BEFORE, after(energy_j=250.0, layout=layout), seconds=1.0)
    assert found.energy_j == energy


def test_throttling_is_a_share_of_the_cycles_between() -> None:
    found = compare(BEFORE, after(cycles={"all": 30, "power": 7}), seconds=1.0)
    assert found.throttled == {"power": 0.25}
    assert not found.moved  # throttling is no error


def test_machine_without_a_card_reports_nothing(tmp_path: Path) -> None:
    assert HealthWatch(root=tmp_path, devices=tmp_path).report() is None


PAGES = CardSnapshot(
    counters={"pages/retired": 2, "pcie/replays": 5}, listed=("pages/", "pcie/replays"), energy_j=None, cycles={}
)


@pytest.mark.parametrize(
    ("counters", "listed", "fell", "lost"),
    [
        ({"pages/retired": 2, "pcie/replays": 5}, PAGES.listed, {}, ()),
        ({"pages/retired": 2}, PAGES.listed, {"pcie/replays": (5, 0)}, ()),  # a driver that was loaded anew
        ({"pages/retired": 2}, ("pages/",), {}, ()),  # its file can no longer be read: unknown
        ({"pcie/replays": 5}, PAGES.listed, {"pages/retired": (2, 0)}, ()),  # no page is ever given back
        ({"pcie/replays": 5}, ("pcie/replays",), {}, ("pages/retired",)),
    ],
)
def test_counter_that_has_no_entry_at_zero_falls_where_its_list_was_read(
    counters: dict[str, int], listed: tuple[str, ...], fell: dict[str, tuple[int, int]], lost: tuple[str, ...]
) -> None:
    found = compare(PAGES, replace(PAGES, counters=counters, listed=listed), seconds=1.0)
    assert (found.fell, found.lost) == (fell, lost)
    assert found.moved is bool(fell or lost)
