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
def test_at_random_every_row_is_in_one_part_and_classes_keep_their_shares(rows: int, classes: int, seed: int) -> None:
    which = np.random.default_rng(seed).integers(classes, size=rows)
    which[: 3 * classes] = np.tile(np.arange(classes), 3)
    parts = at_random(np.arange(rows), which, seed)
    assert sorted(all_of(parts)) == list(range(rows))
    for each in range(classes):
        count = (which == each).sum()
        for part in (parts.validation, parts.test):
            assert abs((which[part] == each).sum() - 0.15 * count) <= 1


def test_the_seed_decides() -> None:
    rows = np.arange(200)
    one, again, other = (at_random(rows, None, seed) for seed in (1, 1, 2))
    assert all_of(one) == all_of(again) != all_of(other)
    assert one.how == {"by": "seed", "seed": 1, "stratified": False}


def test_by_time_parts_follow_one_another_with_an_embargo_between() -> None:
    order = np.random.default_rng(0).permutation(200)
    parts = by_time(order, embargo=3)
    assert all_of(parts) == [*order[:137], *order[140:167], *order[170:]]
    assert parts.how["by"] == "time"


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(TrainerError) as caught:
        at_random(np.arange(60), None, 0)
    assert caught.value.code == "RM517"


def test_a_class_of_two_rows_is_refused() -> None:
    which = np.zeros(200, np.int64)
    which[:2] = 1
    with pytest.raises(TrainerError) as caught:
        at_random(np.arange(200), which, 0)
    assert caught.value.code == "RM583"
