"""Dates and times of further programs and countries."""

from __future__ import annotations

import polars as pl
import pytest

from trainer.data.readers.forms.clocks import advice, clock_digits, usual


@pytest.mark.parametrize(
    ("cell", "usually"),
    [
        ("2024年3月4日", "2024-3-4"),
        ("2024年3月4日 9時30分", "2024-3-4 9:30"),
        ("2024년 3월 4일", "2024-3-4"),
        ("2024-03-04,一", "2024-03-04"),
        ("2024/03/04(月)", "2024/03/04"),
        ("3/14/2024, 9:30:00 AM", "3/14/2024 9:30:00 AM"),
        ("3/14/2024 9:30:00 a. m.", "3/14/2024 9:30:00 aM"),
        ("04MAR2024:09:30:00", "04MAR2024 09:30:00"),
        ("14.03.2024 09:30 Uhr", "14.03.2024 09:30"),
        ("14/03/2024 09h30", "14/03/2024 09:30"),
        ("14/03/2024 9.30.05", "14/03/2024 9:30:05"),
        ("14.03.2024 09.30", "14.03.2024 09:30"),
        ("2024-03", "2024-03-01"),
        ("Mar 04, 2024", "Mar 04, 2024"),
        ("2024-03-04 09:30", "2024-03-04 09:30"),
    ],
)
def test_time_of_another_program_is_brought_to_a_usual_form(cell: str, usually: str) -> None:
    assert usual(pl.Series([cell, None])).to_list() == [usually, None]


def test_month_among_days_is_left_as_it_is() -> None:
    assert usual(pl.Series(["2024-03-04", "2024-03"])).to_list() == ["2024-03-04", "2024-03"]


@pytest.mark.parametrize(
    ("cells", "digits"),
    [
        (["930", "1000"], 4),
        (["0930", "0931"], 4),
        (["0", "1", "59"], 4),
        (["0", "100", "5900"], 6),
        (["93000", "100000"], 6),
        (["0", "60"], 6),
        (["9:30", "9:31"], 0),
        (["1709562600"], 0),
        ([""], 0),
        ([None], 0),
    ],
)
def test_clock_without_leading_zeros_has_as_many_digits_as_its_longest(cells: list[str | None], digits: int) -> None:
    assert clock_digits(pl.Series(cells, dtype=pl.String)) == digits


def test_clock_of_a_typed_column_is_counted_by_its_digits() -> None:
    assert clock_digits(pl.Series([930, 1000])) == 4


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("2024-03-04 09:30:00 EST", "sed 's/ EST//'"),
        ("34200000", "midnight"),
        ("04. Mär 2024", "in English"),
        ("2024-W10", ""),
        ("soon", ""),
    ],
)
def test_time_that_cannot_be_read_is_answered_by_its_form(cell: str, words: str) -> None:
    found = advice(cell)
    assert words in found and bool(words) == bool(found)
