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
    "Nasdaq, currency signs": (
        "Date,Close/Last,Volume,Open,High,Low\n03/14/2024,$11.50,100,$10.50,$12.50,$9.50\n"
        "03/15/2024,$11.00,90,$11.50,$12.50,$9.50\n", "2024-03-14T00:00:00"),
    "ariva.de": (
        "Datum;Erster;Hoch;Tief;Schlusskurs;Stuecke;Volumen\n2024-03-04;10,5;12,5;9,5;11,5;;100\n"
        "2024-03-05;11,5;12,5;9,5;11;;90\n", DAY),
    "investing.com, German": (
        '\ufeff"Datum","Zuletzt","Eröffn.","Hoch","Tief","Vol.","+/- %"\n'
        '"04.03.2024","11,5","10,5","12,5","9,5","0,10K","9,52%"\n'
        '"05.03.2024","11","11,5","12,5","9,5","0,09K","-4,35%"\n', DAY),
    "investing.com, French": (
        '"Date","Dernier","Ouv."," Plus Haut","Plus Bas","Vol.","Variation %"\n'
        '"14/03/2024","11,5","10,5","12,5","9,5","0,10K","9,52%"\n'
        '"15/03/2024","11","11,5","12,5","9,5","0,09K","-4,35%"\n', "2024-03-14T00:00:00"),
    "a spreadsheet with its separator in front": (
        "sep=;\nDate;Open;High;Low;Close;Volume\n2024-03-04;10,5;12,5;9,5;11,5;100\n"
        "2024-03-05;11,5;12,5;9,5;11,0;90\n", DAY),
    "CryptoDataDownload, an address in front": (
        "https://www.CryptoDataDownload.com\nUnix,Date,Symbol,Open,High,Low,Close,Volume,tradecount\n"
        "1709544600000,2024-03-04 09:30:00,BTCUSDT,10.5,12.5,9.5,11.5,100,5\n"
        "1709544660000,2024-03-04 09:31:00,BTCUSDT,11.5,12.5,9.5,11,90,5\n", UTC),  # as its epochs state
    "comments in front": (
        "# symbol: XYZ\n# zone: New York\n\nDate,Open,High,Low,Close,Volume\n2024-03-04,10.5,12.5,9.5,11.5,100\n"
        "2024-03-05,11.5,12.5,9.5,11,90\n", DAY),
    "a separator at each line's end": (
        "Date,Open,High,Low,Close,Volume\n2024-03-04,10.5,12.5,9.5,11.5,100,\n2024-03-05,11.5,12.5,9.5,11,90,\n", DAY),
    "CSV (Macintosh)": (
        "Date,Open,High,Low,Close,Volume\r2024-03-04,10.5,12.5,9.5,11.5,100\r2024-03-05,11.5,12.5,9.5,11,90\r", DAY),
    "Binance, the month in which milliseconds became microseconds": (
        "1709544600000,10.5,12.5,9.5,11.5,100,1709544659999,1100.5,12,40,440,0\n"
        "1709544660000000,11.5,12.5,9.5,11,90,1709544719999999,1000.5,12,40,440,0\n", UTC),
    "Interactive Brokers, a hyphen before the clock": (
        "date,open,high,low,close,volume,average,barCount\n20240304-09:30:00,10.5,12.5,9.5,11.5,100,11,7\n"
        "20240304-09:31:00,11.5,12.5,9.5,11,90,11,7\n", NEW_YORK),
    "Massive (Polygon)": (
        "ticker,volume,open,close,high,low,window_start,transactions\n"
        "XYZ,100,10.5,11.5,12.5,9.5,1709562600000000000,7\nXYZ,90,11.5,11,12.5,9.5,1709562660000000000,7\n", NEW_YORK),
    "years of two digits": (
        "Date,Open,High,Low,Close,Volume\n4-Mar-24,10.5,12.5,9.5,11.5,100\n5-Mar-24,11.5,12.5,9.5,11,90\n", DAY),
    "months by their whole names": (
        "Date;Open;High;Low;Close;Volume\nMarch 4, 2024;10.5;12.5;9.5;11.5;100\n"
        "March 5, 2024;11.5;12.5;9.5;11;90\n", DAY),
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
    assert "--columns date=2,open=3,high=4,low=5,close=6,volume=7" in str(caught.value)
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


SPELLED = {
    "Germany": ("1.100,50", ";"),
    "Switzerland": ("1'100.50", ";"),
    "Switzerland, typeset": ("1\u2019100.50", ","),
    "France": ("1\u202f100,50", ";"),
    "spaces": ("1 100.50", ","),
    "currency behind": ("1100,50 €", ";"),
}


@pytest.mark.parametrize("place", SPELLED)
def test_groups_of_digits_and_decimal_marks_are_read_as_they_are_written_there(tmp_path: Path, place: str) -> None:
    cell, separator = SPELLED[place]
    row = separator.join(["2024-03-04", *[cell] * 4, "5"])
    bars = read(
        tmp_path / "bars.csv", separator.join(["Date", "Open", "High", "Low", "Close", "Volume"]) + f"\n{row}\n"
    )[0]
    assert (bars.open[0], bars.close[0]) == (1100.5, 1100.5)


HEADER, SAVE = b"Date,Open,High,Low,Close,Volume\n", "Save the sheet as CSV"
REFUSED = {
    "an Excel workbook": (b"PK\x03\x04\x14\x00\x06\x00[Content_Types].xml" + bytes(99), "RM510", SAVE),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "RM510", SAVE),
    "a web page": (b"<!DOCTYPE html><html><body>Too many requests</body></html>\n", "RM510", "download again"),
    "JSON": (b'[{"date": "2024-03-04", "open": 1}]\n', "RM510", "Write it as CSV first"),
    "an unknown encoding": ("Date;Cl\x81ture\n2024-03-04;1\n".encode("latin-1"), "RM510", "iconv"),
    "spaces between cells": (HEADER.replace(b",", b" ") + b"2024-03-04 1 2 1 2 5\n", "RM512", "replace what is"),
    "perhaps a volume": (b"time,open,high,low,close,number\n2024-03-04,1,2,1,2,5\n", "RM512", "volume=none"),
    "a volume without a number": (HEADER + b"2024-03-04,1,2,1,2,-\n", "RM512", "volume=none"),
    "unknown words": (b"a,b,c,d,e,f\n2024-03-04,1,2,1,2,5\n", "RM512", "date=NAME,open=NAME,high=NAME,low=NAME"),
    "days as a spreadsheet counts them": (HEADER + b"45355,1,2,1,2,5\n", "RM513", "a date format"),
    "several instruments": (
        b"date,symbol,open,high,low,close,volume\n2024-03-04,A,1,2,1,2,5\n2024-03-04,B,1,2,1,2,5\n", "RM515", "A, B"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_file_that_is_no_series_of_bars_is_refused_with_a_remedy_that_fits(tmp_path: Path, kind: str) -> None:
    content, code, remedy = REFUSED[kind]
    (path := tmp_path / "bars.csv").write_bytes(content)
    with pytest.raises(TrainerError, match=code) as caught:
        open_source(path, Reading())
    assert remedy in str(caught.value)


@pytest.mark.parametrize("header", ["time,open,high,low,close", "time,open,high,low,close,Volume"])
def test_volume_that_is_stated_as_absent_is_zero_and_recorded_so(tmp_path: Path, header: str) -> None:
    text = f"{header}\n2024-03-04,1,2,1,2{',' * (header.count(',') - 4)}\n"
    bars, source = read(tmp_path / "bars.csv", text, columns=(("volume", "none"),))
    assert bars.volume.tolist() == [0.0]
    assert source.as_dict()["columns"]["volume"] == "none"


def test_contracts_of_a_future_that_follow_each_other_stay_in_one_file(tmp_path: Path) -> None:
    text = "date,symbol,open,high,low,close,volume\n2024-03-04,ESH4,1,2,1,2,5\n2024-03-05,ESM4,1,2,1,2,5\n"
    assert len(read(tmp_path / "bars.csv", text)[0]) == 2


def test_year_of_two_digits_is_never_one_of_antiquity(tmp_path: Path) -> None:
    text = "Date,Open,High,Low,Close,Volume\n" + "".join(f"3/{day}/24,1,2,1,2,5\n" for day in (13, 14, 15))
    assert str(read(tmp_path / "bars.csv", text)[0].date[0]) == "2024-03-13T00:00:00"


def test_grouped_volume_is_no_empty_one_that_ticks_replace(tmp_path: Path) -> None:
    text = 'Date,Open,High,Low,Close,Volume,Tick Volume\n2024-03-14,1.5,2,1,1.5,"1,234,567",5\n'
    assert read(tmp_path / "bars.csv", text)[0].volume[0] == 1_234_567


@pytest.mark.parametrize("blank", [",,,,,", "  ", '"","","","","",""', "\t", ";;;", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_row_of_empty_cells_is_a_blank_line_wherever_it_stands(tmp_path: Path, blank: str, end: str) -> None:
    lines = [
        blank,
        "Date,Open,High,Low,Close,Volume",
        blank,
        "2024-03-04,1,2,1,2,5",
        blank,
        "2024-03-05,1,2,1,2,6",
        blank,
    ]
    (path := tmp_path / "bars.csv").write_text(end.join([*lines, ""]), newline="")
    source = open_source(path, Reading())
    assert joined(list(source.chunks())).volume.tolist() == [5, 6]
    assert source.bad.dropped == {}
    path.write_text(end.join([*lines[:5], "2024-03-05,1,2,1,2,x", ""]), newline="")
    with pytest.raises(TrainerError, match="line 6"):
        list(open_source(path, Reading()).chunks())


@pytest.mark.parametrize("text", [",,,,\n", ",,,,\n,,,,\n", '""\n', " \n"])
def test_file_of_empty_cells_alone_is_empty(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "bars.csv").write_text(text)
    with pytest.raises(TrainerError, match="RM511"):
        open_source(path, Reading())
