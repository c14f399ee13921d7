"""The rules that a bar keeps, at their bounds, and what each policy does where one is broken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainer.data.readers.bad_rows import BadRows
from trainer.data.readers.bar_checks import LARGEST, Checker, RawRows
from trainer.runtime.errors import TrainerError

SOUND = {"open": 10.0, "high": 12.0, "low": 9.0, "close": 11.0, "volume": 100.0}


def rows(*changes: dict[str, Any], first: int = 2) -> RawRows:
    """A row for each dict of changes to a sound bar; `minute` is its time, by default its number."""
    count = len(changes)
    minutes = [each.pop("minute", place + first) for place, each in enumerate(map(dict, changes))]
    values = {name: np.array([{**SOUND, **each}[name] for each in changes]) for name in SOUND}
    none = np.zeros(count, np.bool_)
    return RawRows(
        line=np.arange(first, first + count),
        date=np.datetime64("2024-03-04T09:00:00") + np.array(minutes) * np.timedelta64(60, "s"),
        values=values,
        trouble={kind: none.copy() for kind in ("cells", "time", "zone", "missing", "number")},
        shown={},
    )


def checker(policy: str) -> Checker:
    return Checker(bad=BadRows(policy=policy, where="a.csv"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, None),
        ({"volume": 0.0}, None),
        ({"volume": -1e-9}, "volume"),
        ({"volume": LARGEST}, None),
        ({"volume": 1.001 * LARGEST}, "volume"),
        ({"low": 1e-9}, None),
        ({"low": 0.0}, "price"),
        ({"high": LARGEST}, None),
        ({"high": np.inf}, "price"),
        ({"close": np.nan}, "price"),
        ({"open": 9.0, "close": 12.0}, None),  # on the edges of the bar
        ({"open": 8.99}, "outside"),
        ({"close": 12.01}, "outside"),
        ({"high": 9.0, "low": 9.0, "open": 9.0, "close": 9.0}, None),
        ({"high": 8.0}, "range"),
    ],
)
def test_bar_at_the_bounds_of_a_rule_keeps_it(change: dict[str, float], kind: str | None) -> None:
    dropping = checker("drop")
    kept = dropping.bars(rows({}, change))
    assert dropping.bad.dropped == ({kind: 1} if kind else {})
    assert len(kept) == 2 - (kind is not None)
    if kind:
        with pytest.raises(TrainerError) as caught:
            checker("error").bars(rows({}, change))
        assert caught.value.where == "a.csv, line 3"


@pytest.mark.parametrize(("minute", "kind"), [(4, None), (3, None), (2, "duplicate"), (1, "unsorted")])
def test_time_is_later_than_that_of_the_bar_before(minute: int, kind: str | None) -> None:
    dropping = checker("drop")
    dropping.bars(rows({"minute": 2}))
    assert len(dropping.bars(rows({"minute": minute}, first=3))) == (kind is None)  # in a later chunk
    assert dropping.bad.dropped == ({kind: 1} if kind else {})


def test_row_after_one_out_of_order_is_compared_with_the_latest() -> None:
    dropping = checker("drop")
    assert len(dropping.bars(rows({"minute": 5}, {"minute": 1}, {"minute": 3}, {"minute": 6}))) == 2
    assert dropping.bad.dropped == {"unsorted": 2}


def test_price_is_repaired_from_the_bar_before_and_lost_without_one() -> None:
    repairing = checker("repair")
    first = repairing.bars(rows({"close": np.nan}, {}))
    assert len(first) == 1 and repairing.bad.dropped == {"missing": 1}
    second = repairing.bars(rows({"open": np.nan, "volume": -1.0}, first=4))
    assert (second.open[0], second.close[0], second.volume[0]) == (11.0, 11.0, 0.0)


def test_shape_is_repaired_by_exchange_and_by_widening() -> None:
    repairing = checker("repair")
    bars = repairing.bars(rows({"high": 9.0, "low": 12.0}, {"close": 13.0}, {"open": 8.0}))
    assert bars.high.tolist() == [12.0, 13.0, 12.0]
    assert bars.low.tolist() == [9.0, 9.0, 8.0]
    assert repairing.bad.repaired == {"range": 1, "outside": 2}
    assert not repairing.unsorted


def test_bars_out_of_order_are_kept_for_sorting_under_repair_alone() -> None:
    repairing = checker("repair")
    assert len(repairing.bars(rows({"minute": 5}, {"minute": 1}))) == 2
    assert repairing.unsorted and repairing.bad.repaired == {"unsorted": 1}


def test_first_bad_line_is_refused_whatever_its_kind() -> None:
    found = rows({}, {"close": 99.0}, {"volume": -1.0})
    found.trouble["cells"][2] = True
    with pytest.raises(TrainerError, match="RM514") as caught:
        checker("error").bars(found)
    assert (caught.value.where, "close is outside low to high" in str(caught.value.what)) == ("a.csv, line 3", True)


def test_row_with_a_wrong_number_of_cells_is_counted_once() -> None:
    dropping = checker("repair")
    found = rows({}, {"close": -1.0, "minute": 0})
    found.trouble["cells"][1] = True
    assert len(dropping.bars(found)) == 1
    assert (dropping.bad.dropped, dropping.bad.repaired) == ({"cells": 1}, {})


@pytest.mark.parametrize(
    ("bad", "sound", "few"), [(1, 99, True), (1, 98, False), (2, 198, True), (0, 1, True), (4, 4, False), (5, 4, False)]
)
def test_few_bad_rows_are_left_out_and_more_are_refused_with_their_share(bad: int, sound: int, few: bool) -> None:
    checking = checker("few")
    kept = sum(len(checking.bars(rows({"open": 20.0} if at < bad else {}, first=at + 2))) for at in range(bad + sound))
    assert (kept, checking.bad.dropped) == (sound, {"outside": bad} if bad else {})
    if few:
        return checking.finish()
    with pytest.raises(TrainerError, match="RM514") as caught:
        checking.finish()
    assert f"one of {bad} bad rows of {bad + sound}" in caught.value.what and caught.value.where == "a.csv, line 2"
    assert ("--columns" in caught.value.next) is (bad > sound)


def test_offset_that_other_times_lack_is_refused_however_few() -> None:
    mixed = rows(*({} for _ in range(500)))
    mixed.trouble["zone"][400] = True
    with pytest.raises(TrainerError, match="RM575"):
        checker("few").bars(mixed)


@pytest.mark.parametrize("change", [{"close": 12.000001}, {"open": 8.999999}])
def test_bar_outside_by_rounding_is_widened(change: dict[str, float]) -> None:
    strict = checker("error")
    kept = strict.bars(rows(change))
    assert (kept.high[0], kept.low[0]) == (max(12.0, *change.values()), min(9.0, *change.values()))
    assert strict.bad.dropped == strict.bad.repaired == {}


def test_days_without_trades_are_left_out_by_the_option_however_many() -> None:
    checking = checker("few")
    checking.bars(rows(*({"open": 0.0} for _ in range(9)), {}))
    with pytest.raises(TrainerError, match="9 bad rows of 10") as caught:
        checking.finish()
    assert "--on-bad-row drop" in caught.value.next
