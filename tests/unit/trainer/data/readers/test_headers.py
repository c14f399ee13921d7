"""Files without a header, or with one of several lines, are known by their shape."""

import polars as pl
import pytest

from trainer.data.readers.column_names import find_columns
from trainer.data.readers.headers import BINANCE, find_header, fixed_point, is_data, numbered
from trainer.runtime.errors import TrainerError

OHLCV = ["1.0", "2.0", "0.5", "1.5", "100"]


def header(*rows, chosen=None):
    return find_header([list(row) for row in rows], 3, "bars.csv", chosen or {})


@pytest.mark.parametrize(
    ("cells", "names", "known_as"),
    [
        (["2025-01-02", *OHLCV], "date", "taken as date and OHLCV"),
        (["2025.01.02", "09:30", *OHLCV], "date", "MetaTrader 4"),
        (["1700000000000", *OHLCV, "1700000059999", "1", "2", "3", "4", "0"], "open_time", "Binance"),
        (["1700000000000000", *OHLCV, "1700000059999999", "1", "2", "3", "4", "0"], "open_time", "Binance"),
    ],
)
def test_file_without_a_header_is_known_by_its_first_bar(cells, names, known_as):
    found = header(cells)
    assert (found.line, found.names[0], len(found.names)) == (0, names, len(cells))
    assert known_as in found.known_as
    assert set(find_columns(found.names, "bars.csv").place) >= {"date", "open", "high", "low", "close", "volume"}


def test_binance_klines_have_twelve_columns():
    assert len(BINANCE) == 12


def test_bar_of_unknown_shape_is_refused_or_read_as_chosen():
    cells = ["2025-01-02", *OHLCV, "7", "8"]
    with pytest.raises(TrainerError) as refused:
        header(cells)
    assert refused.value.code == "RM730"
    found = header(cells, chosen={"close": "5"})
    assert (found.names, found.chosen) == (tuple("12345678"), {"close": "5"})


def test_three_lines_of_yfinance_are_one_header():
    found = header(["Price", "Close", "Open"], ["Ticker", "X", "X"], ["Date", "", ""])
    assert (found.names, found.line) == (("Date", "Close", "Open"), 5)


def test_line_of_words_is_the_header():
    found = header(["Date", "Open"], ["2025-01-02", "1"])
    assert (found.names, found.line, found.known_as) == (("Date", "Open"), 3, None)


@pytest.mark.parametrize(
    ("cells", "data"),
    [
        (["2025-01-02", *OHLCV], True),
        (["20250102", "1", "2", "3", "4"], True),
        (["2025-01-02", "1", "2", "3"], False),  # too few numbers
        (["a", "b", "c", "d", "2025-01-02", *OHLCV], False),  # a date far behind
        (["1.0", "2.0", "3.0", "4.0"], False),  # no date
    ],
)
def test_bar_is_a_date_in_front_and_four_numbers(cells, data):
    assert is_data(cells) is data


@pytest.mark.parametrize(
    ("more", "price", "scale"),
    [
        (["rtype", "publisher_id", "instrument_id"], "5000250000000", 1e-9),
        (["rtype", "publisher_id", "instrument_id"], "5000.25", 1.0),
        (["rtype", "publisher_id"], "5000250000000", 1.0),
    ],
)
def test_whole_numbers_are_scaled_in_files_of_databento_alone(more, price, scale):
    names = ["ts_event", *more, "open", "high", "low", "close", "volume"]
    table = pl.DataFrame({name: [price, None] for name in names})
    assert fixed_point(find_columns(names, "bars.csv"), table) == scale


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (["X", "1", "20240304", "093000", *OHLCV], "date=3,time=4,open=5,high=6,low=7,close=8,volume=9"),
        (["1709562600", "9.5", "12.5", "10.5", "11.5", "100"], "date=1,open=4,high=3,low=2,close=5,volume=6"),
        (["1709562600", "10", "10", "10", "10", "7", "9"], ""),
        (["2024-03-04", "1.5", "2", "x", "1", "5"], ""),
        (["20240304 093000 123", "10.25", "10", "10.25", "3"], "single trades"),
    ],
)
def test_columns_of_bars_without_a_header_are_proposed_by_their_size(row, named):
    assert named in numbered([row]) and bool(named) == bool(numbered([row]))


def test_columns_in_the_usual_order_are_proposed_where_equal_prices_leave_the_size_open():
    rows = [
        ["93/02/11", "48.5", "48.5", "48.26", "48.37", "52", "9"],
        ["93/02/12", "48.37", "48.9", "48.26", "48.3", "5"],
    ]
    assert "date=1,open=2,high=3,low=4,close=5,volume=6" in numbered(rows)


def test_columns_are_not_proposed_where_rows_differ_in_their_order():
    assert numbered([["2024-03-04", "1", "4", "2", "3", "9"], ["2024-03-05", "4", "1", "2", "3", "9"]]) == ""
