"""Columns that number or name the rows are known by their name and their values together."""

import numpy as np
import polars as pl
import pytest

from trainer.data.tables.encoding import parse_cells
from trainer.data.tables.identifiers import FEWEST_ROWS, called_identifier, is_identifier

EVERY = np.ones(FEWEST_ROWS, np.bool_)


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "ID",
        "PassengerId",
        "customer_id",
        "CustomerID",
        "row number",
        "index",
        "Unnamed: 0",
        "__index_level_0__",
        "",
        " ",
        "GUID",
        "column 1",
    ],
)
def test_name_of_an_identifier_is_known(name):
    assert called_identifier(name)


@pytest.mark.parametrize(
    "name",
    ["paid", "idle", "humidity", "id_type", "grid", "width", "index of x", "число", "column 2", "Column1", "column_1"],
)
def test_name_that_only_holds_its_letters_is_none(name):
    assert not called_identifier(name)


def judged(cells, name="customer_id", kept=EVERY):
    return is_identifier(name, parse_cells(pl.Series("a", cells, dtype=pl.String)), kept)


def test_identifier_has_another_whole_number_or_word_in_every_row():
    numbers = [str(number) for number in range(FEWEST_ROWS)]
    assert judged(numbers)
    assert judged([f"c{number}" for number in numbers])
    assert not judged(numbers, name="age")
    assert not judged([*numbers[:-1], "0"])
    assert not judged([*numbers[:-1], "0.5"])
    assert not judged([*numbers[:-1], ""])


def test_column_is_judged_by_the_rows_that_are_kept():
    cells = [*(str(number) for number in range(FEWEST_ROWS)), "0"]
    assert judged(cells, kept=np.append(EVERY, False))
    assert not judged(cells, kept=np.append(EVERY, True))
    assert not judged(cells[:FEWEST_ROWS], kept=np.append(EVERY[1:], False))  # too few rows
