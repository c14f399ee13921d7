"""Files as programs and sites export them: SYNTHETIC bars in the layouts of their headers, read without an option."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainer.data.bar import Bars, joined
from trainer.data.features.inspect import inspect_data
from trainer.data.readers.bars import Reading, Source, open_source
from trainer.runtime.errors import TrainerError

NEW_YORK, UTC = "2024-03-04T14:30:00", "2024-03-04T09:30:00"
DAY = "2024-03-04T00:00:00"


def read(path: Path, text: str, **reading: object) -> tuple[Bars, Source]:
    path.write_text(text)
    source = open_source(path, Reading(**reading))  # type: ignore[arg-type]
    return joined(list(source.chunks())), source


EXPORTS = {
    "MetaTrader 5, real volume zero": (
        "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n"
        "2024.03.04\t09:30:00\t10.5\t12.5\t9.5\t11.5\t100\t0\t3\n"
        "2024.03.04\t09:31:00\t11.5\t12.5\t9.5\t11\t90\t0\t3\n", NEW_YORK),
    "MetaTrader 5, real volume": (
        "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n"
        "2024.03.04\t09:30:00\t10.5\t12.5\t9.5\t11.5\t7\t100\t3\n"
        "2024.03.04\t09:31:00\t11.5\t12.5\t9.5\t11\t6\t90\t3\n", NEW_YORK),
    "MetaTrader 4": (
        "2024.03.04,09:30,10.5,12.5,9.5,11.5,100\n2024.03.04,09:31,11.5,12.5,9.5,11,90\n", NEW_YORK),
    "HistData": (
        "20240304 093000;10.5;12.5;9.5;11.5;100\n20240304 093100;11.5;12.5;9.5;11;90\n", NEW_YORK),
    "Binance, no header, milliseconds": (
        "1709544600000,10.5,12.5,9.5,11.5,100,1709544659999,1100.5,12,40,440,0\n"
        "1709544660000,11.5,12.5,9.5,11,90,1709544719999,1000.5,12,40,440,0\n", UTC),
    "Binance, no header, microseconds": (
        "1709544600000000,10.50000000,12.5,9.5,11.5,100,1709544659999999,1100.5,12,40,440,0\n"
        "1709544660000000,11.5,12.5,9.5,11,90,1709544719999999,1000.5,12,40,440,0\n", UTC),
    "Binance, header": (
        "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,"
        "taker_buy_quote_volume,ignore\n"
        "1709544600000,10.5,12.5,9.5,11.5,100,1709544659999,1100.5,12,40,440,0\n"
        "1709544660000,11.5,12.5,9.5,11,90,1709544719999,1000.5,12,40,440,0\n", UTC),
    "investing.com, newest first": (
        '\ufeff"Date","Price","Open","High","Low","Vol.","Change %"\n'
        '"Mar 05, 2024","11","11.5","12.5","9.5","0.09K","-4.35%"\n'
        '"Mar 04, 2024","11.5","10.5","12.5","9.5","0.1K","9.52%"\n'
        '"Mar 01, 2024","1,010.5","1,010.5","1,010.5","1,010.5","-","0%"\n', DAY),
    "Yahoo, old": (
        "Date,Open,High,Low,Close,Adj Close,Volume\n"
        "2024-03-04,10.5,12.5,9.5,11.5,11.1,100\n2024-03-05,11.5,12.5,9.5,11,10.6,90\n", DAY),
    "yfinance, three lines of header": (
        "Price,Close,High,Low,Open,Volume\nTicker,XYZ,XYZ,XYZ,XYZ,XYZ\nDate,,,,,\n"
        "2024-03-04,11.5,12.5,9.5,10.5,100\n2024-03-05,11,12.5,9.5,11.5,90\n", DAY),
    "yfinance, minutes": (
        "Price,Close,High,Low,Open,Volume\nTicker,XYZ,XYZ,XYZ,XYZ,XYZ\nDatetime,,,,,\n"
        "2024-03-04 14:30:00+00:00,11.5,12.5,9.5,10.5,100\n2024-03-04 14:31:00+00:00,11,12.5,9.5,11.5,90\n", NEW_YORK),
    "Stooq, daily": (
        "Date,Open,High,Low,Close,Volume\n2024-03-04,10.5,12.5,9.5,11.5,100\n2024-03-05,11.5,12.5,9.5,11,90\n", DAY),
    "Stooq, bulk": (
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>\n"
        "XYZ.US,5,20240304,093000,10.5,12.5,9.5,11.5,100,0\nXYZ.US,5,20240304,093500,11.5,12.5,9.5,11,90,0\n",
        NEW_YORK),
    "Interactive Brokers, zone behind the time": (
        "date,open,high,low,close,volume,average,barCount\n"
        "20240304 09:30:00 US/Eastern,10.5,12.5,9.5,11.5,100,11,7\n"
        "20240304 09:31:00 US/Eastern,11.5,12.5,9.5,11,90,11,7\n", NEW_YORK),
    "Interactive Brokers, two spaces": (
        "date,open,high,low,close,volume,average,barCount\n"
        "20240304  09:30:00,10.5,12.5,9.5,11.5,100,11,7\n20240304  09:31:00,11.5,12.5,9.5,11,90,11,7\n", NEW_YORK),
    "TradingView, ISO": (
        "time,open,high,low,close,Volume,Volume MA\n"
        "2024-03-04T09:30:00-05:00,10.5,12.5,9.5,11.5,100,NaN\n2024-03-04T09:31:00-05:00,11.5,12.5,9.5,11,90,95\n",
        NEW_YORK),
    "TradingView, seconds": (
        "time,open,high,low,close,Volume\n1709562600,10.5,12.5,9.5,11.5,100\n1709562660,11.5,12.5,9.5,11,90\n",
        NEW_YORK),
    "Databento, fixed point": (
        "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n"
        "1709562600000000000,33,1,5482,10500000000,12500000000,9500000000,11500000000,100,ESH4\n"
        "1709562660000000000,33,1,5482,11500000000,12500000000,9500000000,11000000000,90,ESH4\n", NEW_YORK),
    "Databento, decimals": (
        "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n"
        "2024-03-04T14:30:00.000000000Z,33,1,5482,10.500000000,12.500000000,9.500000000,11.500000000,100,ESH4\n"
        "2024-03-04T14:31:00.000000000Z,33,1,5482,11.500000000,12.500000000,9.500000000,11.000000000,90,ESH4\n",
        NEW_YORK),
    "Sierra Chart": (
        "Date, Time, Open, High, Low, Last, Volume, # of Trades, OHLC Avg, HLC Avg, HL Avg, Bid Volume, Ask Volume\n"
        "2024/3/4, 09:30:00, 10.5, 12.5, 9.5, 11.5, 100, 7, 11, 11, 11, 60, 40\n"
        "2024/3/4, 09:31:00.0, 11.5, 12.5, 9.5, 11, 90, 7, 11, 11, 11, 60, 30\n", NEW_YORK),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_export_is_read_without_an_option(tmp_path: Path, name: str) -> None:
    text, begin = EXPORTS[name]
    bars, source = read(tmp_path / "bars.csv", text, on_bad_row="drop")
    columns = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    assert [column.tolist() for column in columns] == [[10.5, 11.5], [12.5, 12.5], [9.5, 9.5], [11.5, 11], [100, 90]]
    assert str(bars.date[0]) == begin
    assert inspect_data(source).tick == 0.5


@pytest.mark.parametrize("name", ["MetaTrader 4", "Binance, no header, milliseconds", "HistData"])
def test_file_without_header_is_reported_as_such(tmp_path: Path, name: str) -> None:
    source = read(tmp_path / "bars.csv", EXPORTS[name][0])[1]
    assert source.as_dict()["layout"].startswith("no header")


@pytest.mark.parametrize("chunk_size", [1, 3, 100])
def test_newest_first_is_turned_whatever_the_chunks(tmp_path: Path, chunk_size: int) -> None:
    rows = [f"2024-03-{day:02},{day},{day + 2},{day - 1},{day + 1},{day}" for day in range(28, 3, -1)]
    bars, source = read(
        tmp_path / "b.csv", "\n".join(["Date,Open,High,Low,Close,Volume", *rows, ""]), chunk_size=chunk_size
    )
    assert bars.open.tolist() == list(range(4, 29))
    assert (np.diff(bars.date).astype(int) == 86_400).all()
    assert source.as_dict()["newest_first"] is True


def test_thousands_and_letters_are_numbers(tmp_path: Path) -> None:
    text = (
        '"Date","Price","Open","High","Low","Vol."\n"Jan 02, 2020","2,000.50","1,990","2,010.00","1,980.25","1.25M"\n'
    )
    bars = read(tmp_path / "bars.csv", text)[0]
    assert (bars.close[0], bars.open[0], bars.high[0], bars.low[0], bars.volume[0]) == (
        2000.5,
        1990,
        2010,
        1980.25,
        1.25e6,
    )


@pytest.mark.parametrize("cell", ["2,00.50", "1.2X", "12,34,567", "M", "1,2"])
def test_text_that_only_looks_grouped_is_no_number(tmp_path: Path, cell: str) -> None:
    text = f'"Date","Price","Open","High","Low","Vol."\n"Jan 02, 2020","{cell}","1","2","1","5"\n'
    with pytest.raises(TrainerError, match="RM513"):
        read(tmp_path / "bars.csv", text)


def test_columns_are_taken_as_given(tmp_path: Path) -> None:
    text = "when,a,b,c,d,n,close\n2024-03-04,10.5,12.5,9.5,11.5,100,7\n"
    given = (("date", "when"), ("open", "a"), ("high", "b"), ("low", "c"), ("close", "d"), ("volume", "6"))
    bars = read(tmp_path / "bars.csv", text, columns=given)[0]
    assert (bars.close[0], bars.volume[0]) == (11.5, 100)


def test_columns_of_a_file_without_header_are_given_by_number(tmp_path: Path) -> None:
    text = "XYZ,2024-03-04,10.5,12.5,9.5,11.5,100,9,9\n"
    with pytest.raises(TrainerError, match="RM730") as caught:
        read(tmp_path / "bars.csv", text)
    assert "--columns date=1" in str(caught.value)
    given = (("date", "2"), ("open", "3"), ("high", "4"), ("low", "5"), ("close", "6"), ("volume", "7"))
    assert read(tmp_path / "bars.csv", text, columns=given)[0].volume[0] == 100


def test_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="RM731"):
        read(tmp_path / "bars.csv", EXPORTS["Yahoo, old"][0], columns=(("close", "Adjusted"),))


def test_missing_column_is_answered_with_the_option_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="RM512") as caught:
        read(tmp_path / "bars.csv", "when,open,high,low,close,volume\n2024-03-04,1,1,1,1,1\n")
    assert "--columns date=NAME" in str(caught.value)


def test_file_of_bad_rows_is_refused_for_the_first_of_them(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    path.write_text("Date,Open,High,Low,Close,Volume\n2024-03-04,x,2,1,2,5\n2024-03-05,x,2,1,2,5\n")
    with pytest.raises(TrainerError, match="RM513"):
        inspect_data(open_source(path, Reading()))


def test_file_that_may_not_be_read_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bars.csv"
    path.write_text(EXPORTS["Yahoo, old"][0])

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(TrainerError, match="RM510") as caught:
        open_source(path, Reading())
    assert "Permission denied" in str(caught.value)


def test_unknown_zone_is_named_where_no_time_needs_one(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="RM573"):
        read(tmp_path / "bars.csv", EXPORTS["Yahoo, old"][0], zone="Mars/Phobos")
