"""Numbers with commas, groups and signs."""

from __future__ import annotations

from typing import Literal

import polars as pl
import pytest

from trainer.data.tables.number_marks import decimal_mark, is_grouped, numbers, units

SHOWN = {
    "German": (["1.234,56", "7,5", "12"], ","),
    "German millions": (["1.234.567", "1.000"], ","),
    "four digits and a comma": (["1234,567"], ","),
    "English": (["1,234.56", "7.5", "12"], "."),
    "English millions": (["1,234,567", "1,000"], "."),
    "a sign alone": (["5 %", "7 %"], "."),
    "groups of three alone": (["73,121", "5,000"], ""),
    "a 0 in front of a comma": (["0,125", "1,250"], ","),
    "a 0 in front of a point": (["0.125", "1.250 %"], "."),
    "both": (["1.234,56", "1,234.56"], None),
    "losses in brackets": (["(1,234.5)", "7"], "."),
}


@pytest.mark.parametrize("name", SHOWN)
def test_decimal_mark_is_what_only_one_mark_explains(name: str) -> None:
    cells, mark = SHOWN[name]
    assert decimal_mark(pl.Series(cells)) == mark


READ: dict[str, tuple[Literal[",", "."], list[float | None]]] = {
    "1.234,56": (",", [1234.56]),
    "-1.234.567,5": (",", [-1234567.5]),
    "1.234": (",", [1234.0]),
    "25": (",", [25.0]),
    "12.5": (",", [None]),
    "$1,234.56": (".", [1234.56]),
    "-$1,234": (".", [-1234.0]),
    "€ 7.5": (".", [7.5]),
    "12.5 %": (".", [12.5]),
    "1'234.50": (".", [1234.5]),
    "1\u202f234,50 €": (",", [1234.5]),
    "(1,234)": (".", [-1234.0]),
    "($1,234.5)": (".", [-1234.5]),
    "\u22125.8": (".", [-5.8]),
    "5.80-": (".", [-5.8]),
    "1.234,5- EUR": (",", [-1234.5]),
    "CHF 1'234.50": (".", [1234.5]),
    "1.234 EUR": (",", [1234.0]),
    "₹1,234.00": (".", [1234.0]),
    "R$ 1.234,5": (",", [1234.5]),
    "$-5": (".", [-5.0]),
    "kr 5,5": (",", [5.5]),
    "12,34,567.5": (".", [1234567.5]),
    "12,34": (".", [None]),
    "EUR": (".", [None]),
    "5 kg": (".", [None]),
    "(a)": (".", [None]),
    "red": (".", [None]),
}


@pytest.mark.parametrize("cell", READ)
def test_cell_is_read_by_its_mark_or_not_at_all(cell: str) -> None:
    mark, found = READ[cell]
    assert numbers(pl.Series([cell]), mark).to_list() == found


@pytest.mark.parametrize(
    ("cells", "unit"),
    [
        (["72 kg", "5.5 kg", "-3kg"], ["kg"]),
        (["12.5K", "3M", "1,200K"], ["K", "M"]),
        (["1st", "2nd", "3rd", "4th"], []),
        (["user_1", "user_2"], []),
        (["5h 30m", "2h 10m"], []),
        (["12:30", "9:15"], []),
        (["red", "5 kg"], []),
        ([], []),
    ],
)
def test_unit_is_what_stands_behind_nearly_every_number(cells: list[str], unit: list[str]) -> None:
    assert units(pl.Series(cells, dtype=pl.String)) == unit


@pytest.mark.parametrize(
    ("cells", "grouped"), [(["1.234", "7"], True), (["1.5"], False), (["7"], False), (["0.125"], False)]
)
def test_points_between_groups_differ_from_decimal_points(cells: list[str], grouped: bool) -> None:
    assert is_grouped(pl.Series(cells)) is grouped
