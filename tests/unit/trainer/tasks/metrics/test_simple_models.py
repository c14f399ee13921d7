"""Simpler models next to a network: a bounded amount of work, on rows spread over all."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.dataset import Dataset
from trainer.tasks.metrics import simple_models
from trainer.tasks.metrics.simple_models import AbsentError, codes_apart, some_rows, work_of


def rows(count):
    made = {
        "date": np.arange(count),
        "features": np.zeros((count, 2), np.float32),
        "target": np.arange(count) * 1.0,
        "persistence": np.zeros(count),
    }
    return Dataset(**made)


@given(st.integers(1000, 3000), st.integers(1000, 3000))
def test_rows_are_as_many_as_may_be_and_spread_over_all(count, most):
    found = some_rows(rows(count), most).target
    assert len(found) == min(count, most)
    assert (found[0], found[-1]) == (0, count - 1)
    assert np.diff(found).min() >= 1
    assert np.diff(found).max() <= count / min(count, most) + 1


def test_model_of_too_few_rows_is_left_out_with_the_reason():
    with pytest.raises(AbsentError, match="only 999 of 2,000 rows"):
        some_rows(rows(2000), 999)
    assert len(some_rows(rows(10), 999)) == 10  # there are no more


@given(st.integers(1, 10**7), st.integers(1, 500), st.integers(0, 50))
def test_work_of_trees_is_bounded_whatever_the_table(count, width, classes):
    used, rounds = work_of(count, width, classes)
    assert 0 <= used <= count
    assert rounds <= simple_models.MOST_ROUNDS
    outputs = classes if classes > 2 else 1
    of_one = simple_models.OF_A_TREE + simple_models.OF_A_COLUMN * width + simple_models.OF_A_NUMBER * used * width
    assert rounds * outputs * of_one <= simple_models.TREE_SECONDS * (1 + 1e-9)


def test_codes_are_counted_at_their_columns_alone():
    embeddings = ({"column": 1, "values": 4, "width": 2},)
    assert codes_apart(SimpleNamespace(features=({},) * 3, embeddings=embeddings)) == [0, 4, 0]
