"""Cells to numbers, as exports write them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.readers.numbers import numbers_of

NUMBERS = st.lists(st.integers(-(10**9), 10**9).map(lambda number: number / 100), min_size=1, max_size=5)


def read(cells, decimal="."):
    values, empty, wrong = numbers_of(pl.Series("a", cells, dtype=pl.String), decimal)
    return values, empty.tolist(), wrong.tolist()


@given(NUMBERS)
def test_number_is_the_same_in_every_notation(numbers):
    plain = [f"{number:.2f}" for number in numbers]
    grouped = [f"{number:,.2f}" for number in numbers]
    european = [each.translate(str.maketrans(",.", ".,")) for each in grouped]
    for cells, decimal in ((plain, "."), (grouped, "."), (european, ",")):
        values, empty, wrong = read(cells, decimal)
        assert np.allclose(values, numbers)
        assert not any(empty) and not any(wrong)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1.5K", 1500),
        ("0.05m", 50_000),
        ("2B", 2e9),
        ("1,234.5K", 1_234_500),
        ("1.2T", 1.2e12),
        ("0.05万", 500),
        ("1.5億", 1.5e8),
    ],
)
def test_letter_scales_a_number(cell, value):
    assert read([cell, "1"])[0].tolist() == [value, 1.0]


@pytest.mark.parametrize("cell", ["", " ", "-", "null", "None", "N/A", "NA", None])
def test_cell_without_a_value_is_empty_and_not_wrong(cell):
    values, empty, wrong = read([cell, "1"])
    assert (np.isnan(values).tolist(), empty, wrong) == ([True, False], [True, False], [False, False])


@pytest.mark.parametrize("cell", ["1,23", "1,2345", "12,34,567", "K", "x", "1 2", "1.2.3"])
def test_text_that_is_no_number_is_wrong_and_not_empty(cell):
    values, empty, wrong = read([cell, "1"])
    assert (np.isnan(values).tolist(), empty, wrong) == ([True, False], [False, False], [True, False])


def test_typed_column_is_taken_as_it_is():
    values, empty, wrong = numbers_of(pl.Series([1, None, 3]), ",")
    assert (values[[0, 2]].tolist(), empty.tolist(), wrong.any()) == ([1.0, 3.0], [False, True, False], False)


def test_words_of_a_categorical_column_are_read_as_they_are_written():
    values, empty, wrong = numbers_of(pl.Series(["10.5", "9", None, "x"], dtype=pl.Categorical), ".")
    assert values[:2].tolist() == [10.5, 9]
    assert (empty.tolist(), wrong.tolist()) == ([False, False, True, False], [False, False, False, True])
