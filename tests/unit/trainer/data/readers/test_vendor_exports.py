"""Files as further vendors and programs write them: SYNTHETIC bars in their layouts, read right without an option.

Headers were looked up in public files and in the vendors' own documentation on 2026-11-23.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC as UTC_ZONE
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from tests.unit.trainer.data.readers.test_exports import DAY, NEW_YORK, read
from trainer.data.readers.bars import Reading, open_source
from trainer.runtime.errors import TrainerError

UTC = "2024-03-04T14:30:00"
TWO = ("10.5,12.5,9.5,11.5,100", "11.5,12.5,9.5,11,90")


def minutes(header: str, first: str, second: str) -> str:
    """Return a header and two lines."""
    return f"{header}\n{first}\n{second}\n" if header else f"{first}\n{second}\n"


def bars(header: str, first: str, second: str, behind: str = "") -> str:
    """Return a header and two lines, of which only the times are given; OHLCV stands behind them."""
    return minutes(header, f"{first},{TWO[0]}{behind}", f"{second},{TWO[1]}{behind}")


EXPORTS = {
    "NinjaTrader, days": (minutes("", "20240304;10.5;12.5;9.5;11.5;100", "20240305;11.5;12.5;9.5;11;90"), DAY),
    "Dukascopy, GMT": (
        bars("Gmt time,Open,High,Low,Close,Volume", "14.03.2024 14:30:00.000", "14.03.2024 14:31:00.000"),
        "2024-03-14T14:30:00"),
    "dukascopy-node": (
        bars("timestamp,open,high,low,close,volume", "1709562600000", "1709562660000"), UTC),
    "Kraken OHLCVT": (bars("", "1709562600", "1709562660", ",7"), UTC),
    "CryptoDataDownload, Bitstamp": (
        "https://www.CryptoDataDownload.com\nunix,date,symbol,open,high,low,close,Volume BTC,Volume USD\n"
        "1709562660,2024-03-04 14:31:00,BTC/USD,11.5,12.5,9.5,11,90,1000.5\n"
        "1709562600,2024-03-04 14:30:00,BTC/USD,10.5,12.5,9.5,11.5,100,1100.5\n"
        "1709562540,2024-03-04 14:29:00,BTC/USD,0,0,0,0,0,0\n", UTC),
    "CryptoDataDownload, days": (
        "https://www.CryptoDataDownload.com\nunix,date,symbol,open,high,low,close,Volume BTC,Volume USD\n"
        "1709596800,2024-03-05 00:00:00,BTC/USD,11.5,12.5,9.5,11,90,1000.5\n"
        "1709510400,2024-03-04 00:00:00,BTC/USD,10.5,12.5,9.5,11.5,100,1100.5\n"
        "1709424000,2024-03-03 00:00:00,BTC/USD,0,0,0,0,0,0\n", DAY),
    "CryptoDataDownload, hours of 2020": (
        "Date,Symbol,Open,High,Low,Close,Volume BTC,Volume USD\n2024-03-04 10-AM,BTCUSD,11.5,12.5,9.5,11,90,1000.5\n"
        "2024-03-04 09-AM,BTCUSD,10.5,12.5,9.5,11.5,100,1100.5\n"
        "2024-03-04 08-AM,BTCUSD,0,0,0,0,0,0\n", "2024-03-04T14:00:00"),
    "Kaggle, Bitcoin by minutes": (
        "Timestamp,Open,High,Low,Close,Volume_(BTC),Volume_(Currency),Weighted_Price\n"
        "1709562600,10.5,12.5,9.5,11.5,100,1100.5,11\n1709562660,11.5,12.5,9.5,11,90,1000.5,11\n", UTC),
    "Alpaca": (
        bars("timestamp,open,high,low,close,volume,trade_count,vwap", "2024-03-04 14:30:00+00:00",
             "2024-03-04 14:31:00+00:00", ",7,11.2"), UTC),
    "Alpaca, letters": (bars("t,o,h,l,c,v,n,vw", "2024-03-04T14:30:00Z", "2024-03-04T14:31:00Z", ",7,11"), UTC),
    "Tiingo": (
        minutes("date,close,high,low,open,volume,adjClose,adjHigh,adjLow,adjOpen,adjVolume,divCash,splitFactor",
                "2024-03-04T00:00:00.000Z,11.5,12.5,9.5,10.5,100,1,1,1,1,1,0,1",
                "2024-03-05T00:00:00.000Z,11,12.5,9.5,11.5,90,1,1,1,1,1,0,1"), DAY),
    "Yahoo by Ticker.history": (
        bars("Date,Open,High,Low,Close,Volume,Dividends,Stock Splits", "2024-03-04 00:00:00-05:00",
             "2024-03-05 00:00:00-05:00", ",0.0,0.0"), DAY),
    "Yahoo, flattened columns": (
        minutes("Date,Close_XYZ,High_XYZ,Low_XYZ,Open_XYZ,Volume_XYZ", "2024-03-04,11.5,12.5,9.5,10.5,100",
                "2024-03-05,11,12.5,9.5,11.5,90"), DAY),
    "Yahoo, pairs as names": (
        minutes("Date,\"('Close', 'XYZ')\",\"('High', 'XYZ')\",\"('Low', 'XYZ')\",\"('Open', 'XYZ')\","
                "\"('Volume', 'XYZ')\"", "2024-03-04,11.5,12.5,9.5,10.5,100", "2024-03-05,11,12.5,9.5,11.5,90"), DAY),
    "Alpha Vantage": (bars("date,1. open,2. high,3. low,4. close,5. volume", "2024-03-04", "2024-03-05"), DAY),
    "Alpha Vantage, newest first": (
        "timestamp,open,high,low,close,adjusted_close,volume\n2024-03-05,11.5,12.5,9.5,11,11,90\n"
        "2024-03-04,10.5,12.5,9.5,11.5,11.5,100\n2024-03-01,10.5,10.5,10.5,10.5,,\n", DAY),
    "EODHD by minutes": (
        bars("Timestamp,Gmtoffset,Datetime,Open,High,Low,Close,Volume", '1709562600,0,"2024-03-04 14:30:00"',
             '1709562660,0,"2024-03-04 14:31:00"'), UTC),
    "EODHD by days": (
        minutes("Date,Open,High,Low,Close,Adjusted_close,Volume", "2024-03-04,10.5,12.5,9.5,11.5,1,100",
                "2024-03-05,11.5,12.5,9.5,11,1,90"), DAY),
    "FirstRate": (bars("", "2024-03-04 09:30:00", "2024-03-04 09:31:00"), NEW_YORK),
    "Kibot": (bars("", "03/14/2024,09:30", "03/14/2024,09:31"), "2024-03-14T13:30:00"),
    "Portara": (bars("", "20240304,0930", "20240304,0931"), NEW_YORK),
    "TradeStation, days": (
        bars('"Date","Time","Open","High","Low","Close","Vol","OI"', "03/14/2024,16:00", "03/15/2024,16:00", ",5"),
        "2024-03-14T20:00:00"),
    "TradeStation, up and down": (
        minutes('"Date","Time","Open","High","Low","Close","Up","Down"', "03/14/2024,09:30,10.5,12.5,9.5,11.5,60,40",
                "03/14/2024,09:31,11.5,12.5,9.5,11,50,40"), "2024-03-14T13:30:00"),
    "MultiCharts": (
        bars("<Date>, <Time>, <Open>, <High>, <Low>, <Close>, <Volume>", "03/14/2024,09:30:00", "03/14/2024,09:31:00"),
        "2024-03-14T13:30:00"),
    "AmiBroker": (
        bars("Ticker,Date/Time,Open,High,Low,Close,Volume", "XYZ,2024-03-04", "XYZ,2024-03-05"), DAY),
    "a ticker in front, no header": (bars("", "XYZ,20240304", "XYZ,20240305"), DAY),
    "Barchart, a line of words at the end": (
        minutes('Time,Open,High,Low,Latest,Change,%Change,Volume', '"2024-03-05",11.5,12.5,9.5,11,-.5,-4.3%,90',
                '"2024-03-04",10.5,12.5,9.5,11.5,1,9.5%,100')
        + '"2024-03-01",10.5,10.5,10.5,10.5,0,0%,\n"Downloaded from Barchart.com as of 03-05-2024 09:52am CST"\n', DAY),
    "Stooq in Polish": (
        bars("Data,Otwarcie,Najwyzszy,Najnizszy,Zamkniecie,Wolumen", "2024-03-04", "2024-03-05"), DAY),
    "R's quantmod": (
        minutes('"Index","XYZ.Open","XYZ.High","XYZ.Low","XYZ.Close","XYZ.Volume","XYZ.Adjusted"',
                "2024-03-04,10.5,12.5,9.5,11.5,100,1", "2024-03-05,11.5,12.5,9.5,11,90,1"), DAY),
    "OANDA": (
        minutes("time,volume,complete,mid.o,mid.h,mid.l,mid.c",
                "2024-03-04T14:30:00.000000000Z,100,True,10.5,12.5,9.5,11.5",
                "2024-03-04T14:31:00.000000000Z,90,True,11.5,12.5,9.5,11"), UTC),
    "pandas, columns that were never named": (
        minutes(",0,1,2,3,4,5", f"0,1709562600000,{TWO[0]}", f"1,1709562660000,{TWO[1]}"), UTC),
    "BitMEX": (
        minutes("timestamp,symbol,open,high,low,close,trades,volume,vwap,lastSize",
                "2024-03-04T14:30:00.000Z,XBTUSD,10.5,12.5,9.5,11.5,7,100,11,1",
                "2024-03-04T14:31:00.000Z,XBTUSD,11.5,12.5,9.5,11,7,90,11,1"), UTC),
    "Google Sheets": (
        bars("Date,Open,High,Low,Close,Volume", "3/14/2024 16:00:00", "3/15/2024 16:00:00"), "2024-03-14T20:00:00"),
    "National Stock Exchange of India": (
        minutes('"Date ","series ","OPEN ","HIGH ","LOW ","PREV. CLOSE ","ltp ","close ","vwap ","VOLUME ",'
                '"No of trades "',
                '"04-Mar-2024","EQ","10.5","12.5","9.5","9","11.4","11.5","11","100","7"',
                '"05-Mar-2024","EQ","11.5","12.5","9.5","11.5","11.1","11","11","90","7"'), DAY),
    "BSE, India": (
        minutes("Date,Open Price,High Price,Low Price,Close Price,WAP,No.of Shares,No. of Trades",
                "4-March-2024,10.5,12.5,9.5,11.5,11,100,7", "5-March-2024,11.5,12.5,9.5,11,11,90,7"), DAY),
    "KuCoin": (
        minutes("time,open,close,high,low,volume,turnover", "1709562600,10.5,11.5,12.5,9.5,100,1",
                "1709562660,11.5,11,12.5,9.5,90,1"), UTC),
    "Quandl, continuous futures": (
        minutes("Date,Open,High,Low,Last,Change,Settle,Volume,Previous Day Open Interest",
                "2024-03-04,10.5,12.5,9.5,11.5,1,11.5,100,7", "2024-03-05,11.5,12.5,9.5,11,1,11,90,7"), DAY),
    "AKShare": (
        minutes("日期,股票代码,开盘,收盘,最高,最低,成交量,成交额", "2024-03-04,000001,10.5,11.5,12.5,9.5,100,1100",
                "2024-03-05,000001,11.5,11,12.5,9.5,90,1000"), DAY),
    "Naver, newest first": (
        "날짜,종가,전일비,시가,고가,저가,거래량\n2024.03.05,11,-0.5,11.5,12.5,9.5,90\n2024.03.04,11.5,1,10.5,12.5,9.5,100\n"
        "2024.03.01,0,0,0,0,0,0\n", DAY),
    "CryptoCompare": (
        minutes("time,high,low,open,volumefrom,volumeto,close", "1709562600,12.5,9.5,10.5,100,1100,11.5",
                "1709562660,12.5,9.5,11.5,90,1000,11"), UTC),
    "Bybit": (bars("startTime,open,high,low,close,volume,turnover", "1709562600000", "1709562660000", ",1100"), UTC),
    "Macintosh line ends, one of Unix at the end": (
        "Date,Open,High,Low,Close,Volume\r2024-03-04,10.5,12.5,9.5,11.5,100\r2024-03-05,11.5,12.5,9.5,11,90\n", DAY),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_vendor_export_is_read_without_an_option(tmp_path: Path, name: str) -> None:
    text, begin = EXPORTS[name]
    found, _ = read(tmp_path / "bars.csv", text, on_bad_row="drop")
    columns = (found.open, found.high, found.low, found.close, found.volume)
    assert [column.tolist() for column in columns] == [[10.5, 11.5], [12.5, 12.5], [9.5, 9.5], [11.5, 11], [100, 90]]
    assert str(found.date[0]) == begin


def test_epochs_next_to_dates_are_the_times(tmp_path: Path) -> None:
    text = bars("Timestamp,Gmtoffset,Datetime,Open,High,Low,Close,Volume", "1709562600,0,2024-03-04 14:30:00",
                "1709562660,0,2024-03-04 14:31:00")  # fmt: skip
    source = read(tmp_path / "bars.csv", text)[1]
    assert (source.zone, source.as_dict()["columns"]["date"]) == ("UTC", "Timestamp")
    given = read(tmp_path / "bars.csv", text, columns=(("date", "Datetime"),))
    assert given[1].as_dict()["columns"]["date"] == "Datetime"


def test_volume_of_up_and_down_ticks_is_recorded_as_both_columns(tmp_path: Path) -> None:
    source = read(tmp_path / "bars.csv", EXPORTS["TradeStation, up and down"][0])[1]
    assert source.as_dict()["columns"]["volume"] == "Up + Down"


@pytest.mark.parametrize(
    ("named", "volume"),
    [
        ("Volume USD,Volume BTC", 7),
        ("Volume USD,Volume EUR", 5),
        ("Volume MA,Volume BTC", 7),
        ("Volume From,Volume To", 5),
        ("volumeto,volumefrom", 7),
        ("vol_20,volume_shares", 7),
    ],
)
def test_volume_of_the_coin_is_taken_before_that_of_the_money(tmp_path: Path, named: str, volume: float) -> None:
    text = f"date,open,high,low,close,{named}\n2024-03-04,1,2,1,2,5,7\n"
    assert read(tmp_path / "bars.csv", text)[0].volume[0] == volume


@pytest.mark.parametrize(
    "name", ["vol_20", "Volume MA", "volume_sma20", "volume_weighted_average_price", "Volume Change", "volume_buy"]
)
def test_figure_made_of_a_volume_is_not_taken_for_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(TrainerError, match="RM512") as caught:
        read(tmp_path / "bars.csv", f"date,open,high,low,close,{name}\n2024-03-04,1,2,1,2,5\n")
    assert "no column 'volume'" in str(caught.value) and name in str(caught.value)


def test_two_sets_of_prices_are_refused_with_their_names(tmp_path: Path) -> None:
    names = [f"{side}.{name}" for side in ("first", "second") for name in ("open", "high", "low", "close")]
    with pytest.raises(TrainerError, match="RM512") as caught:
        read(tmp_path / "bars.csv", f"date,{','.join(names)},volume\n2024-03-04,1,2,1,2,1,2,1,2,5\n")
    assert "2 sets of open, high, low and close" in str(caught.value) and "second" in str(caught.value)


ANOTHER_ORDER = {
    "Bitfinex: open, close, high, low": "1709562600000,10.5,11.5,12.5,9.5,100\n1709562660000,11.5,11,12.5,9.5,90\n",
    "Coinbase: low, high, open, close": "1709562600,9.5,12.5,10.5,11.5,100\n1709562660,9.5,12.5,11.5,11,90\n",
    "Gate.io: volume, close, high, low, open": "1709562600,100,11.5,12.5,9.5,10.5\n1709562660,90,11,12.5,9.5,11.5\n",
}


@pytest.mark.parametrize("name", ANOTHER_ORDER)
def test_bars_without_a_header_in_another_order_are_refused_before_any_is_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(TrainerError, match="RM730") as caught:
        read(tmp_path / "bars.csv", ANOTHER_ORDER[name], on_bad_row="repair")
    assert "cells 2 to 5 are not open, high, low and close" in str(caught.value)


def test_line_of_words_at_the_end_is_counted_and_one_within_is_refused(tmp_path: Path) -> None:
    closing, bar = "Downloaded from a site, 2024\n".replace(",", ""), "2024-03-0{},1,2,1,2,5\n"
    head = "date,open,high,low,close,volume\n"
    found, source = read(tmp_path / "bars.csv", head + bar.format(4) + closing)
    assert (len(found), source.bad.dropped) == (1, {"words": 1})
    assert "words alone (first: line 3)" in source.bad.summary()
    for text in (head + bar.format(4) + closing + bar.format(5), head + bar.format(4) + "2024-03-05\n"):
        with pytest.raises(TrainerError, match="RM513"):
            read(tmp_path / "bars.csv", text)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100])
def test_line_of_words_is_found_in_any_chunk(tmp_path: Path, chunk_size: int) -> None:
    text = EXPORTS["Barchart, a line of words at the end"][0]
    found, source = read(tmp_path / "bars.csv", text, on_bad_row="drop", chunk_size=chunk_size)
    assert (found.volume.tolist(), source.bad.dropped) == ([100, 90], {"words": 1, "missing": 1})


def test_day_with_a_midnight_next_to_a_clock_is_one_time(tmp_path: Path) -> None:
    row = "2024-03-04 00:00:00,09:3{},1,2,1,2,5\n"
    text = "Date,Time,Open,High,Low,Close,Volume\n" + row.format(0) + row.format(1)
    assert str(read(tmp_path / "bars.csv", text)[0].date[0]) == NEW_YORK


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_character_that_only_python_takes_for_a_line_end_stays_in_its_cell(tmp_path: Path, mark: str) -> None:
    text = f'date,open,high,low,close,volume,note\n2024-03-04,1,2,1,2,5,"a{mark}b"\n2024-03-05,1,2,1,2,6,c\n'
    assert read(tmp_path / "bars.csv", text)[0].volume.tolist() == [5, 6]


@pytest.mark.parametrize("chunk_size", [1, 2, 100])
def test_hour_alone_is_read_behind_a_row_without_a_time(tmp_path: Path, chunk_size: int) -> None:
    hours = [*(f"2024-03-04 {hour:02}-AM" for hour in (1, 2)), "", *(f"2024-03-04 {hour:02}-PM" for hour in (1, 2))]
    text = "Date,Open,High,Low,Close,Volume\n" + "".join(f"{hour},1,2,1,2,5\n" for hour in hours)
    found, source = read(tmp_path / "bars.csv", text, on_bad_row="drop", chunk_size=chunk_size)
    assert (len(found), sum(source.bad.dropped.values())) == (4, 1)
    found = read(tmp_path / "bars.csv", text.replace("2024-03-04 01-AM", ""), on_bad_row="drop")[0]
    assert len(found) == 3


def test_index_that_pandas_writes_without_a_name_is_the_time(tmp_path: Path) -> None:
    day = [datetime(2024, 3, 4, tzinfo=UTC_ZONE), datetime(2024, 3, 5, tzinfo=UTC_ZONE)]
    prices = {name: [1.0, 2.0] for name in ("open", "high", "low", "close", "volume")}
    pl.DataFrame({**prices, "__index_level_0__": day}).write_parquet(tmp_path / "bars.parquet")
    source = open_source(tmp_path / "bars.parquet", Reading())
    assert source.columns.used["date"] == "__index_level_0__"


LANGUAGES = {
    "Portuguese": '"Data","Último","Abertura","Máxima","Mínima","Vol."',
    "Dutch": '"Datum","Laatste","Open","Hoog","Laag","Vol."',
    "Turkish": '"Tarih","Şimdi","Açılış","Yüksek","Düşük","Hac."',  # noqa: RUF001
    "Russian": '"Дата","Цена","Откр.","Макс.","Мин.","Объём"',
    "Chinese": '"日期","收盘","开盘","高","低","交易量"',
    "Japanese": '"日付け","終値","始値","高値","安値","出来高"',
    "Polish": '"Data","Ostatnio","Otwarcie","Max.","Min.","Wol."',
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_header_of_investing_com_is_read_in_many_languages(tmp_path: Path, language: str, form: str) -> None:
    header = unicodedata.normalize(form, LANGUAGES[language])  # type: ignore[arg-type]
    found = read(tmp_path / "bars.csv", f'{header}\n"2024-03-04","11.5","10.5","12.5","9.5","100"\n')[0]
    assert (found.open[0], found.high[0], found.low[0], found.close[0]) == (10.5, 12.5, 9.5, 11.5)
