"""Files of exchanges, brokers and data services: SYNTHETIC bars in their layouts, with times and zone.

Headers and how times are written were looked up in public files and documentation on 2026-11-23.
"""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import polars as pl
import pytest

from trainer.data.bar import Bars, joined
from trainer.data.readers.bars import Reading, Source, open_source
from trainer.data.readers.joined_series import Join, open_series
from trainer.runtime.errors import TrainerError

NEW_YORK, UTC, STATED, DAYS = "America/New_York", "UTC", "in the data", None
FIRST, SECOND = "10.5,12.5,9.5,11.5", "11.5,12.5,9.5,11"
HALF_PAST, DAY = "2024-03-04T14:30:00", "2024-03-04T00:00:00"
COLUMNS = {"open": [10.5, 11.5], "high": [12.5, 12.5], "low": [9.5, 9.5], "close": [11.5, 11.0], "volume": [100, 90]}


def read(path: Path, content: bytes, **reading: object) -> tuple[Bars, Source]:
    path.write_bytes(content)
    source = open_source(path, Reading(**reading))  # type: ignore[arg-type]
    return joined(list(source.chunks())), source


def zipped(**files: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return packed.getvalue()


def columnar(times: pl.Series, *, parquet: bool) -> bytes:
    frame, file = pl.DataFrame({times.name: times, **COLUMNS}), io.BytesIO()
    (frame.write_parquet if parquet else frame.write_ipc)(file)
    return file.getvalue()


def plain(header: str, first: str, second: str, behind: str = "") -> str:
    return (f"{header}\n" if header else "") + f"{first},{FIRST},100{behind}\n{second},{SECOND},90{behind}\n"


MINUTES = [dt.datetime(2024, 3, 4, 14, 30), dt.datetime(2024, 3, 4, 14, 31)]
OHLCV = "Open,High,Low,Close,Volume"
EXPORTS: dict[str, tuple[str | bytes, str, str | None]] = {
    "Dukascopy, local time": (
        plain(f"Local time,{OHLCV}", "04.03.2024 21:30:00.000 GMT+0700", "04.03.2024 21:31:00.000 GMT+0700"),
        HALF_PAST, STATED),
    "Dukascopy, clocks put forward": (
        plain(f"Local time,{OHLCV}", "09.03.2024 19:00:00.000 GMT-0500", "10.03.2024 20:00:00.000 GMT-0400"),
        "2024-03-10T00:00:00", STATED),
    "Dukascopy, JForex": (
        plain(f"Time (EET),{OHLCV}", "2024.03.04 16:30:00", "2024.03.04 16:31:00"), HALF_PAST, "Europe/Athens"),
    "a column of times in UTC": (plain(f"UTC time,{OHLCV}", "2024-03-04 14:30", "2024-03-04 14:31"), HALF_PAST, UTC),
    "Polygon's flat file": (gzip.compress(
        b"ticker,volume,open,close,high,low,window_start,transactions\n"
        b"XYZ,100,10.5,11.5,12.5,9.5,1709562600000000000,7\nXYZ,90,11.5,11,12.5,9.5,1709562660000000000,7\n"),
        HALF_PAST, UTC),
    "CoinAPI": (
        "time_period_start,time_period_end,time_open,time_close,price_open,price_high,price_low,price_close,"
        "volume_traded,trades_count\n"
        + "".join(f"2024-03-04T14:3{n}:00.0000000Z,2024-03-04T14:3{n + 1}:00.0000000Z,2024-03-04T14:3{n}:01.0230000Z,"
                  f"2024-03-04T14:3{n}:59.1230000Z,{row},7\n"
                  for n, row in enumerate((f"{FIRST},100", f"{SECOND},90"))),
        HALF_PAST, STATED),
    "CoinMarketCap": (
        "\ufefftimeOpen;timeClose;timeHigh;timeLow;name;open;high;low;close;volume;marketCap;timestamp\n"
        + "".join(f'"2024-03-0{day}T00:00:00.000Z";"2024-03-0{day}T23:59:59.999Z";"2024-03-0{day}T01:53:00.000Z";'
                  f'"2024-03-0{day}T00:34:00.000Z";"2781";{row};1000;"2024-03-0{day}T23:59:59.999Z"\n'
                  for day, row in ((5, "11.5;12.5;9.5;11;90"), (4, "10.5;12.5;9.5;11.5;100"), (3, "0;0;0;0;0"))),
        DAY, DAYS),
    "Upbit": (
        "market,candle_date_time_utc,candle_date_time_kst,opening_price,high_price,low_price,trade_price,timestamp,"
        "candle_acc_trade_price,candle_acc_trade_volume,unit\n"
        f"KRW-XYZ,2024-03-04T14:30:00,2024-03-04T23:30:00,{FIRST},1709562659123,1100,100,1\n"
        f"KRW-XYZ,2024-03-04T14:31:00,2024-03-04T23:31:00,{SECOND},1709562719456,1000,90,1\n", HALF_PAST, UTC),
    "Moscow Exchange": (
        "history\n\nBOARDID;TRADEDATE;SHORTNAME;SECID;NUMTRADES;VALUE;OPEN;LOW;HIGH;LEGALCLOSEPRICE;WAPRICE;CLOSE;VOLUME\n"
        "TQBR;2024-03-04;Name;XYZ;7;1100;10.5;9.5;12.5;11.4;11;11.5;100\n"
        "TQBR;2024-03-05;Name;XYZ;7;1000;11.5;9.5;12.5;11;11;11;90\n", DAY, DAYS),
    "Finam": (
        "<TICKER>;<PER>;<DATE>;<TIME>;<OPEN>;<HIGH>;<LOW>;<CLOSE>;<VOL>\n"
        "XYZ;1;14/03/24;093000;10.5;12.5;9.5;11.5;100\nXYZ;1;14/03/24;093100;11.5;12.5;9.5;11;90\n",
        "2024-03-14T13:30:00", NEW_YORK),
    "baostock by minutes": (
        "date,time,code,open,high,low,close,volume,amount,adjustflag\n"
        f"2024-03-04,20240304093500000,sh.600000,{FIRST},100,1100,3\n"
        f"2024-03-04,20240304094000000,sh.600000,{SECOND},90,1000,3\n", "2024-03-04T14:35:00", NEW_YORK),
    "Tushare": (
        ",ts_code,trade_date,open,high,low,close,pre_close,change,pct_chg,vol,amount\n"
        f"0,600000.SH,20240305,{SECOND},11.5,-0.5,-4.3,90,1000\n1,600000.SH,20240304,{FIRST},10,1.5,15,100,1100\n"
        "2,600000.SH,20240301,0,0,0,0,10,0,0,0,0\n", DAY, DAYS),
    "Deutsche Börse": (
        "ISIN,Mnemonic,SecurityDesc,SecurityType,Currency,SecurityID,Date,Time,StartPrice,MaxPrice,MinPrice,EndPrice,"
        f'TradedVolume,NumberOfTrades\n"DE0","XYZ","NAME B DK-,20","Stock","EUR",25,2024-03-04,14:30,{FIRST},100,7\n'
        f'"DE0","XYZ","NAME B DK-,20","Stock","EUR",25,2024-03-04,14:31,{SECOND},90,7\n',
        "2024-03-04T19:30:00", NEW_YORK),
    "Bloomberg, lines in front": (
        "Security,XYZ US Equity\nStart Date,3/1/2024 0:00\nPeriod,D\n\nDate,PX_OPEN,PX_HIGH,PX_LOW,PX_LAST,PX_VOLUME\n"
        f"03/14/2024,{FIRST},100\n03/15/2024,{SECOND},90\n", "2024-03-14T00:00:00", DAYS),
    "Refinitiv, lines in front filled up": (
        '"XYZ.N - Price History",,,,,,,,,,,,\nInterval,Daily,,,,,,,,,,,\n,,,,,,,,,,,,\n'
        "Exchange Date,Close,Net,%Chg,Open,Low,High,Volume,Turnover - USD,Flow,,,\n"
        "05-Mar-2024,11,-0.5,-4.3%,11.5,9.5,12.5,90,1000,10,,,\n04-Mar-2024,11.5,1,9%,10.5,9.5,12.5,100,1100,10,,,\n"
        "01-Mar-2024,0,0,0%,0,0,0,0,0,0,,,\n", DAY, DAYS),
    "Zerodha": (
        plain("date,open,high,low,close,volume,oi", "2024-03-04 09:15:00+05:30", "2024-03-04 09:16:00+05:30", ",0"),
        "2024-03-04T03:45:00", STATED),
    "Zerodha by days": (
        plain("date,open,high,low,close,volume", "2024-03-04 00:00:00+05:30", "2024-03-05 00:00:00+05:30"), DAY, DAYS),
    "Angel One, no header": (
        plain("", "2024-03-04T09:15:00+05:30", "2024-03-04T09:16:00+05:30"), "2024-03-04T03:45:00", STATED),
    "investing.com in Spanish": (
        '"Fecha","Último","Apertura","Máximo","Mínimo","Vol.","% var."\n'
        '"14.03.2024","11,00","11,50","12,50","9,50","0,09K","-4,35%"\n'
        '"13.03.2024","11,50","10,50","12,50","9,50","0,10K","9,52%"\n'
        '"12.03.2024","0,00","0,00","0,00","0,00","0,00K","0,00%"\n', "2024-03-13T00:00:00", DAYS),
    "Taiwan Stock Exchange": (
        '"113年03月 2330 XYZ"\n'
        '"日期","成交股數","成交金額","開盤價","最高價","最低價","收盤價","漲跌價差","成交筆數",\n'
        '"113/03/04","100","1,100,000","10.50","12.50","9.50","11.50","+1.00","7",\n'
        '"113/03/05","90","1,000,000","11.50","12.50","9.50","11.00","-0.50","7",\n"說明:"\n', DAY, DAYS),
    "a Japanese site, Shift-JIS": (
        f'日付,始値,高値,安値,終値,出来高\n2024/03/04,"10.5",12.5,9.5,11.5,100\n2024/03/05,{SECOND},90\n'.encode("cp932"),
        DAY, DAYS),
    "a German bank, Windows-1252": (
        ('"XYZ AG (Börse: Xetra)"\n\n"Datum";"Eröffnung";"Hoch";"Tief";"Schluss";"Volumen"\n'
         '"05.03.2024";"11,50";"12,50";"9,50";"11,00";"90"\n"04.03.2024";"10,50";"12,50";"9,50";"11,50";"100"\n'
         '"01.03.2024";"0,00";"0,00";"0,00";"0,00";"0"\n').encode("cp1252"), DAY, DAYS),
    "Euronext": (
        '"Historical Data"\n"From 2024-03-01 to 2024-03-14"\nFR0000000000\n'
        'Date;Open;High;Low;Last;Close;"Number of Shares";"Number of Trades";Turnover;vwap\n'
        "14/03/2024;11.5;12.5;9.5;11;11;90;7;1000;11\n13/03/2024;10.5;12.5;9.5;11.5;11.5;100;7;1100;11\n"
        "12/03/2024;0;0;0;0;0;0;7;1100;11\n", "2024-03-13T00:00:00", DAYS),
    "Macrotrends, sentences in front": (
        "Macrotrends\n\nPrices are adjusted for splits, dividends and more, and closing ones\n\n"
        + plain("date,open,high,low,close,volume", "2024-03-04", "2024-03-05"), DAY, DAYS),
    "OKX": (
        plain("ts,o,h,l,c,vol,volCcy,volCcyQuote,confirm", "1709562600000", "1709562660000", ",1,1,1"), HALF_PAST, UTC),
    "Hyperliquid, t and T": (
        "t,T,s,i,o,c,h,l,v,n\n1709562600000,1709562659999,XYZ,1m,10.5,11.5,12.5,9.5,100,7\n"
        "1709562660000,1709562719999,XYZ,1m,11.5,11,12.5,9.5,90,7\n", HALF_PAST, UTC),
    "Deribit": (
        plain("ticks,open,high,low,close,volume,cost", "1709562600000", "1709562660000", ",1"), HALF_PAST, UTC),
    "days in epochs": (
        plain("time,open,high,low,close,volume", "1709510400", "1709596800"), DAY, DAYS),
    "hours glued to the day": (
        plain("date,open,high,low,close,volume", "2024030409", "2024030410"), "2024-03-04T14:00:00", NEW_YORK),
    "hours alone behind the day": (
        plain("date,open,high,low,close,volume", "2024-03-04 09", "2024-03-04 10"), "2024-03-04T14:00:00", NEW_YORK),
    "times as web servers write them": (
        'date,open,high,low,close,volume\n'
        f'"Mon, 04 Mar 2024 00:00:00 GMT",{FIRST},100\n"Tue, 05 Mar 2024 00:00:00 GMT",{SECOND},90\n', DAY, DAYS),
    "times as JavaScript writes them": (
        plain("date,open,high,low,close,volume", "Mon Mar 04 2024 16:30:00 GMT+0200 (Eastern European Standard Time)",
              "Mon Mar 04 2024 16:31:00 GMT+0200 (Eastern European Standard Time)"), HALF_PAST, STATED),
    "a zip": (zipped(bars_csv=plain("", "1709562600000", "1709562660000", ",1709562659999,1,1,1,1,0")), HALF_PAST, UTC),
    "a zip with a note": (
        zipped(readme_txt="Words.\n", bars_csv=plain("", "2024-03-04 09:30", "2024-03-04 09:31")), HALF_PAST, NEW_YORK),
    "bzip2": (bz2.compress(plain("", "2024-03-04 09:30", "2024-03-04 09:31").encode()), HALF_PAST, NEW_YORK),
    "xz": (lzma.compress(plain("", "2024-03-04 09:30", "2024-03-04 09:31").encode()), HALF_PAST, NEW_YORK),
    "Parquet, an index of pandas": (
        columnar(pl.Series("__index_level_0__", MINUTES).dt.replace_time_zone("UTC"), parquet=True), HALF_PAST, STATED),
    "Feather, clocks of New York": (
        columnar(pl.Series("Datetime", MINUTES).dt.offset_by("-5h").dt.replace_time_zone(NEW_YORK), parquet=False),
        HALF_PAST, STATED),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_export_is_read_with_its_times_and_its_zone(tmp_path: Path, name: str) -> None:
    content, begin, zone = EXPORTS[name]
    found, source = read(
        tmp_path / "bars", content.encode() if isinstance(content, str) else content, on_bad_row="drop"
    )
    assert {role: getattr(found, role).tolist() for role in COLUMNS} == COLUMNS
    assert (str(found.date[0]), source.zone) == (begin, zone)


REFUSED = {
    "several files in a zip": (zipped(a_csv="x\n", b_csv="y\n"), "RM510", "the zip holds 2 files: a.csv, b.csv"),
    "a zip that was cut off": (zipped(a_csv="date,open\n" * 99)[:-30], "RM516", "looks cut off"),
    "an OpenDocument sheet": (
        b"PK\x03\x04\x14\x00" + bytes(24) + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", "RM510", "CSV"),
    "a workbook": (b"PK\x03\x04\x14\x00\x06\x00[Content_Types].xml" + bytes(99), "RM510", "spreadsheet"),
    "bid and ask without a volume": (
        b"DateTime,BidOpen,BidHigh,BidLow,BidClose,AskOpen,AskHigh,AskLow,AskClose\n"
        b"03/14/2024 14:30:00.000,1,2,1,2,1,2,1,2\n", "RM512", "State that there is none: --columns volume=none"),
    "no known encoding": (b"date\xff;open\n", "RM510", "iconv -f SHIFT_JIS"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_export_that_cannot_be_read_is_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    content, code, words = REFUSED[name]
    with pytest.raises(TrainerError, match=code) as caught:
        read(tmp_path / "bars", content)
    assert words in str(caught.value)


def test_epochs_of_a_trade_do_not_replace_times_whose_column_names_their_zone(tmp_path: Path) -> None:
    source = read(tmp_path / "bars", str(EXPORTS["Upbit"][0]).encode())[1]
    assert source.as_dict()["columns"] | {"open": "", "high": "", "low": ""} == {
        "date": "candle_date_time_utc", "open": "", "high": "", "low": "", "close": "trade_price",
        "volume": "candle_acc_trade_volume",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("expiry_date,trade_date,open,high,low,close,volume", "trade_date"),
        ("close_time,begin_time,open,high,low,close,volume", "begin_time"),
        ("LastUpdate,SessionDate,open,high,low,close,volume", "SessionDate"),
    ],
)
def test_column_called_a_date_or_a_time_is_taken_unless_it_is_another_ones(
    tmp_path: Path, header: str, taken: str
) -> None:
    text = f"{header}\n2024-06-21,2024-03-04,{FIRST},100\n2024-06-21,2024-03-05,{SECOND},90\n"
    assert read(tmp_path / "bars", text.encode())[1].as_dict()["columns"]["date"] == taken


@pytest.mark.parametrize(
    "name",
    [
        "quote_asset_volume",
        "taker_buy_volume",
        "avg_volume",
        "volume_usd_ma",
        "implied_vol",
        "ImpliedVol",
        "realized_vol",
        "relative_volume",
        "dollar_volume",
    ],
)
def test_volume_of_money_or_of_one_side_is_not_taken_for_that_of_the_bar(tmp_path: Path, name: str) -> None:
    with pytest.raises(TrainerError, match="RM512"):
        read(tmp_path / "bars", f"date,open,high,low,close,{name}\n2024-03-04,{FIRST},100\n".encode())


@pytest.mark.parametrize(
    ("name", "begin", "zone"),
    [
        ("Time (GMT+2)", "2024-03-04T12:30:00", "Etc/GMT-2"),
        ("DateTime UTC-05:00", "2024-03-04T19:30:00", "Etc/GMT+5"),
        ("Local time GMT+0000", "2024-03-04T14:30:00", "UTC"),
        ("time_utc", "2024-03-04T14:30:00", "UTC"),
    ],
)
def test_offset_in_a_columns_name_counts(tmp_path: Path, name: str, begin: str, zone: str) -> None:
    found, source = read(tmp_path / "bars", plain(f"{name},{OHLCV}", "2024-03-04 14:30", "2024-03-04 14:31").encode())
    assert (str(found.date[0]), source.zone) == (begin, zone)


def test_offset_that_is_no_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="RM513"):
        read(tmp_path / "bars", plain(f"Time (UTC+5:30),{OHLCV}", "2024-03-04 14:30", "2024-03-04 14:31").encode())


@pytest.mark.parametrize("name", ["Closetime", "enddatetime", "lifetime"])
def test_time_glued_to_what_is_not_a_begin_is_not_taken(tmp_path: Path, name: str) -> None:
    with pytest.raises(TrainerError, match="RM512"):
        read(tmp_path / "bars", plain(f"{name},{OHLCV}", "2024-03-04 14:30", "2024-03-04 14:31").encode())


def test_time_of_day_in_a_column_TimeStamp_is_joined_to_its_day(tmp_path: Path) -> None:
    text = plain(f"Date,TimeStamp,{OHLCV}", "2024-03-04,14:30:00", "2024-03-04,14:31:00")
    assert str(read(tmp_path / "bars", text.encode())[0].date[0]) == "2024-03-04T19:30:00"


def test_joined_file_is_read_in_the_zone_that_its_column_names(tmp_path: Path) -> None:
    (path := tmp_path / "vix.csv").write_text("Gmt time,VIX\n2024-03-04 14:30,15\n2024-03-04 14:31,16\n")
    assert str(open_series(Join(path=path, own_stamp="end")).known[0]) == "2024-03-04T14:30:00"


@pytest.mark.parametrize("name", ["traded_vol", "TotVol", "candle_acc_trade_volume", "LeadVolume"])
def test_volume_with_words_in_front_is_taken(tmp_path: Path, name: str) -> None:
    text = f"date,open,high,low,close,{name}\n2024-03-04,{FIRST},100\n"
    assert read(tmp_path / "bars", text.encode())[1].as_dict()["columns"]["volume"] == name


def test_epochs_before_2030_are_never_taken_for_hours(tmp_path: Path) -> None:
    text = plain("date,open,high,low,close,volume", "1830081723", "1830081783")
    assert read(tmp_path / "bars", text.encode())[1].times.pattern == "epoch seconds"


def test_older_encoding_is_recorded(tmp_path: Path) -> None:
    for name, encoding in (("a Japanese site, Shift-JIS", "cp932"), ("a German bank, Windows-1252", "cp1252")):
        content = EXPORTS[name][0]
        assert isinstance(content, bytes)
        assert read(tmp_path / "bars", content, on_bad_row="drop")[1].as_dict()["encoding"] == encoding
