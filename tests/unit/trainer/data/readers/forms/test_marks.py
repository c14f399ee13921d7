"""Decimal marks of files of bars, and prices in fractions."""

from __future__ import annotations

import polars as pl
import pytest

from trainer.data.readers.forms.marks import decimal_of, fraction

PROFIT = ["124.080", "123.983"]  # points of an index, as Nelogica's Profit groups them
FOUND: dict[str, tuple[list[str], list[list[str]], str, str]] = {
    "points group, as the traded money shows": (PROFIT, [["24.228", "980"], ["600.822.115,84", "1,5"]], ";", ","),
    "points group, as millions of contracts show": (["15.234", "15.300"], [["45.678.901", "980.123"]], ";", ","),
    "points group, as small counts without one show": (PROFIT, [["24.228", "980"]], ";", ","),
    "between commas, too": (PROFIT, [["45.678.901"]], ",", ","),
    "a pair of Japan's currency": (["151.234", "151.300"], [["4567", "980"]], ";", "."),
    "natural gas": (["2.234", "2.300"], [["4567", "980"]], ";", "."),
    "coins by three digits": (["151.234", "151.300"], [["4.567", "0.980"]], ";", "."),
    "no volume": (["151.234"], [], ";", "."),
    "a price that denies it": (["151.2", "151.300"], [["45.678.901"]], ";", "."),
    "whole prices, grouped counts": (["151", "152"], [["45.678.901"]], ";", ","),
    "whole closes among others": (["1,5", "2"], [["5"]], ";", ","),
}


@pytest.mark.parametrize("name", FOUND)
def test_decimal_mark_is_found_from_prices_and_volumes(name: str) -> None:
    prices, volumes, separator, mark = FOUND[name]
    columns = [pl.Series(prices)] * 3 + [pl.Series(prices[1:] or prices)]
    assert decimal_of(columns, [pl.Series(cells) for cells in volumes], separator) == mark


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["110'165", "110'190"], "thirty-seconds"),
        (["117'16", "118'00"], "thirty-seconds"),
        (["110-165", "111-00+"], "thirty-seconds"),
        (["450-2", "1450-6"], "eighths"),
        (["11'234", "11'300"], None),
        (["110'165", "110'398"], None),
        (["110.5", "111"], None),
        (["", None], None),
        (["110-165", "450-8"], None),
    ],
)
def test_price_in_fractions_is_known_where_all_are(cells: list[str | None], kind: str | None) -> None:
    found = fraction({"Open": pl.Series(cells, dtype=pl.String), "High": pl.Series(cells, dtype=pl.String)})
    assert (found and found[2]) == kind


def test_numbers_of_a_typed_column_are_no_fractions() -> None:
    assert fraction({"Open": pl.Series([1.5, 2.5])}) is None
