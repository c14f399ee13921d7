from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.tables.split import Parts, at_random, by_time
from trainer.runtime.errors import TrainerError


def all_of(parts: Parts) -> list[int]:
    return np.concatenate([parts.train, parts.validation, parts.test]).tolist()


@given(st.integers(100, 400), st.integers(2, 4), st.integers(0, 99))
def test_random_split_has_every_row_once_and_keeps_class_shares(rows: int, classes: int, seed: int) -> None:
    which = np.random.default_rng(seed).integers(classes, size=rows)
    which[: 3 * classes] = np.tile(np.arange(classes), 3)
    parts = at_random(np.arange(rows), which, seed)
    assert sorted(all_of(parts)) == list(range(rows))
    for each in range(classes):
        count = (which == each).sum()
        for part in (parts.validation, parts.test):
            assert abs((which[part] == each).sum() - 0.15 * count) <= 1


def test_seed_decides_the_result() -> None:
    rows = np.arange(200)
    one, again, other = (at_random(rows, None, seed) for seed in (1, 1, 2))
    assert all_of(one) == all_of(again) != all_of(other)
    assert one.how == {"by": "seed", "seed": 1, "stratified": False}


def test_split_by_time_has_an_embargo_between_its_parts() -> None:
    order = np.random.default_rng(0).permutation(200)
    parts = by_time(order, embargo=3)
    assert all_of(parts) == [*order[:137], *order[140:167], *order[170:]]
    assert parts.how == {"by": "time", "seed": None, "stratified": False}


def test_parts_at_random_are_in_the_order_of_rows_and_hold_70_15_and_15_percent() -> None:
    parts = at_random(np.arange(200), None, 0)
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [140, 30, 30]
    assert all((np.diff(part) > 0).all() for part in (parts.train, parts.validation, parts.test))
    which = np.arange(200) % 2
    assert at_random(np.arange(200), which, 4).how == {"by": "seed", "seed": 4, "stratified": True}


def test_class_of_three_rows_is_in_every_part() -> None:
    which = np.zeros(200, np.int64)
    which[[5, 50, 150]] = 1
    parts = at_random(np.arange(200), which, 0)
    assert [int(which[part].sum()) for part in (parts.train, parts.validation, parts.test)] == [1, 1, 1]


def test_ten_rows_of_each_part_are_enough() -> None:
    for parts in (at_random(np.arange(67), None, 0), by_time(np.arange(67), 0)):
        assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [47, 10, 10]


def test_rows_that_are_too_few_are_refused() -> None:
    with pytest.raises(TrainerError) as caught:
        at_random(np.arange(60), None, 0)
    assert caught.value.code == "RM517"
    with pytest.raises(TrainerError) as caught:
        at_random(np.arange(63), None, 0)
    assert caught.value.what == "63 usable rows split into 45 / 9 / 9 for train / validation / test"
    assert "at least 64 rows" in caught.value.next
    assert len(at_random(np.arange(64), None, 0).test) == 10


def test_embargo_longer_than_a_part_leaves_nothing_of_it() -> None:
    for embargo, sizes in ((80, "0 / 0 / 15"), (25, "45 / 0 / 15")):
        with pytest.raises(TrainerError) as caught:
            by_time(np.arange(100), embargo)
        assert f"split into {sizes} for" in caught.value.what


def test_class_of_two_rows_is_refused() -> None:
    which = np.zeros(200, np.int64)
    which[:2] = 1
    with pytest.raises(TrainerError) as caught:
        at_random(np.arange(200), which, 0)
    assert (caught.value.code, "a class has 2 rows" in caught.value.what) == ("RM583", True)
