"""Columns that are known by their cells, and files of something else than bars."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from trainer.data.readers.forms.by_content import (
    counts_rows,
    in_parts,
    is_other_time,
    no_bars,
    time_column,
    within_range,
)

DAYS = ["2024-03-04", "2024-03-05", "2024-03-06"]
CAPITAL = ["1234567890123", "1234567990123", "1234567790123"]


@pytest.mark.parametrize(
    ("columns", "place"),
    [
        ({"mts": ["1709562600000", "1709562660000"], "flow": ["5", "6"]}, 0),
        ({"flow": ["5", "6"], "ngày": ["14/03/2024", "13/03/2024"]}, 1),
        ({"quando": ["01/02/2024", "02/03/2024"]}, 0),
        ({"erste": DAYS, "zweite": DAYS}, None),
        ({"expiry": DAYS}, None),
        ({"capital": CAPITAL}, None),
        ({"when": ["2024-03-04", "2024-03-06", "2024-03-05"]}, None),
        ({"when": ["2024-03-04", "2024-03-04"]}, None),
        ({"when": ["2024-03-04"]}, None),
        ({"count": ["123456789", "123456790"]}, None),  # seconds in 1973
        ({"when": ["soon", "later"]}, None),
        ({"when": pl.Series(["2024-03-04", "2024-03-05"]).str.to_date()}, 0),
    ],
)
def test_column_of_times_is_the_only_one_whose_cells_rise_or_fall(columns: dict[str, Any], place: int | None) -> None:
    assert time_column([*columns], pl.DataFrame(columns), (), clock=False) == place


def test_day_may_follow_itself_next_to_a_clock() -> None:
    table = pl.DataFrame({"일자": ["20240304", "20240304"], "n": ["9", "8"]})
    assert time_column(["일자", "n"], table, (), clock=True) == 0
    assert time_column(["일자", "n"], table, (0,), clock=True) is None


@pytest.mark.parametrize(("name", "other"), [("close_time", True), ("enddatetime", True), ("begin_time", False)])
def test_time_of_something_else_is_known_by_its_words(name: str, other: bool) -> None:
    assert is_other_time(name) is other


ALL = ("date", "open", "high", "low", "close", "volume")


@pytest.mark.parametrize(
    ("names", "missing", "words"),
    [
        (("time", "ask", "bid"), ALL[1:], "single trades or quotes"),
        (("EUR/USD", "20240304 14:30:00.123", "1.08551", "1.08555"), ALL, "single trades or quotes"),
        (("date", "price", "market_cap"), ("open", "high", "low", "volume"), "One price a row"),
        (("date", "24h_high", "price"), ("open", "high", "low", "volume"), ""),
        (("date", "open", "high", "low", "close", "bid", "ask"), ("volume",), ""),
        (("a", "b"), ALL, "--target COLUMN"),
        (("a", "return"), ALL, "--target return --features table"),
        (("a;b",), ALL, ""),
    ],
)
def test_file_of_something_else_is_answered_with_what_it_is(
    names: tuple[str, ...], missing: tuple[str, ...], words: str
) -> None:
    found = no_bars(names, names, missing)
    assert words in found and bool(words) == bool(found)


def test_date_in_three_columns_is_known() -> None:
    assert in_parts(["year", "month", "day", "open"]) and not in_parts(["day", "open"])


@pytest.mark.parametrize(
    ("cells", "counted"),
    [(["0", "1", "2"], True), ([5, 6, 7], True), (["0", "2"], False), (["20240304", "20240305"], False),
     (["0"], False), (["0", None], False), (DAYS, False)],
)  # fmt: skip
def test_index_of_rows_differs_from_days_by_its_cells(cells: list[Any], counted: bool) -> None:
    assert counts_rows(pl.DataFrame({"": cells}), 0) is counted
    assert not counts_rows(None, 0)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"em": ["1.5", "1"]}, "em"),
        ({"em": ["1.5", "2.5"]}, None),
        ({"em": ["1.5", ""]}, None),
        ({"em": ["1.5", "1"], "adj": ["1", "1"]}, None),
        ({"change": ["5%", "1%"], "em": ["2", "0.5"]}, "em"),
    ],
)
def test_column_within_the_range_of_all_rows_is_the_likely_price(columns: dict[str, Any], named: str | None) -> None:
    table = pl.DataFrame({"high": ["2", "2"], "low": ["0.5", "0.5"]} | columns)
    assert within_range(table.columns, {"high": 0, "low": 1}, table) == named
    assert within_range(table.columns, {"high": 0}, table) is within_range(table.columns, {}, None) is None
