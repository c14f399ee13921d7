"""Columns of volumes by more than the word alone."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from trainer.data.readers.forms.volume_names import is_without_volume, volume_of_parts


@pytest.mark.parametrize(
    ("known", "place", "more"),
    [
        (["volume_usd", "volume_btc"], 1, None),
        (["volume_brl", "volume_qty"], 1, None),  # Profit's own words for money and shares
        (["volume_usd"], 0, None),
        (["up", "down"], 0, 1),
        (["up", "down", "down"], None, None),
        (["traded_volume"], 0, None),
        (["vol_20", "implied_vol", "quote_volume"], None, None),
    ],
)
def test_volume_is_found_by_its_coin_its_parts_or_its_words(known: list[str], place: int | None, more: int | None):
    found: dict[str, int] = {}
    assert (volume_of_parts(known, found), found.get("volume")) == (more, place)


@pytest.mark.parametrize(
    ("columns", "without"),
    [
        ({}, True),
        ({"Upper": ["1.25", "1.5", "1.75"]}, True),
        ({"Change %": ["-1.25%", "2%", "3%"]}, True),
        ({"real": ["0", "0", "0"]}, True),
        ({"number": ["5", "7", "9"]}, False),
        ({"Market Cap": ["1,500,000", "2,000,000"], "Day_Number": ["4", "5"], "SNo": ["1", "2"]}, True),
        ({"Open Interest": ["5", "7"], "Vol Change": ["5", "6"]}, False),
        ({"Turnover": ["1,500,000", "2,000,000"]}, False),
        ({"money": ["1.25M", "3K"]}, False),
        ({"vol_20": ["0.25", "0.5"]}, False),
        ({"number": [5, 7]}, False),
    ],
)
def test_file_is_without_volume_where_no_column_is_called_one_or_counts(columns: dict[str, Any], without: bool) -> None:
    table = pl.DataFrame({"date": ["2024-03-04"] * len(next(iter(columns.values()), [1]))} | columns)
    assert is_without_volume(table.columns, {"date": 0}, table) is without
    assert not is_without_volume(table.columns, {"date": 0}, None)
