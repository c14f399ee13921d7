"""Values of a second file are joined as of each bar's end, and never from the future."""

import gzip
import lzma
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.left_out import examples
from trainer.data.bar import joined
from trainer.data.readers.bars import Reading, open_source
from trainer.data.readers.joined_series import Join, open_series
from trainer.runtime.errors import TrainerError

NEW_YORK = ZoneInfo("America/New_York")
START = datetime(2024, 3, 8, 9, 30, tzinfo=NEW_YORK)  # a Friday; clocks go forward on the Sunday after it


def bars_file(folder, minutes, step=1):
    lines = ["datetime,open,high,low,close,volume"]
    for minute in minutes:
        at = (START.astimezone(UTC) + timedelta(minutes=minute * step)).astimezone(NEW_YORK)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},10,10,10,10,1")
    path = folder / "es.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def vix_file(folder, rows, header="datetime,close", name="vix.csv"):
    path = folder / name
    path.write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    return path


def local(minutes):
    return f"{(START.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(NEW_YORK):%Y-%m-%d %H:%M:%S}"


def read(path, vix, **join):
    source = open_source(path, Reading(join=Join(path=vix, **join), chunk_size=7))
    return joined(list(source.chunks())), source.as_dict()["joined"]


MINUTES = st.lists(st.integers(0, 4 * 1440), min_size=3, max_size=40, unique=True).map(sorted)


@settings(max_examples=examples(60))
@given(
    *(MINUTES, MINUTES, st.sampled_from(["begin", "end"]), st.sampled_from([None, "begin", "end"])),
    *(st.integers(0, 200), st.sampled_from(["carry", "drop"])),
)
def test_value_is_the_last_one_known_at_the_bars_end_and_never_a_later_one(
    tmp_path_factory, bars, vix, stamp, own_stamp, tolerance, outside
):
    folder = tmp_path_factory.mktemp("join")
    rows = [f"{local(minute)},{100 + place}" for place, minute in enumerate(vix)]
    stamps = {"bars": (bars, stamp), "vix": (vix, own_stamp or stamp)}
    steps = {name: usual(minutes) if stamped == "begin" else 0 for name, (minutes, stamped) in stamps.items()}
    expected = {}
    for minute in bars:  # written apart from the reader: one bar at a time, in minutes
        known = [(m + steps["vix"], 100 + p) for p, m in enumerate(vix) if m + steps["vix"] <= minute + steps["bars"]]
        if known and not (outside == "drop" and minute + steps["bars"] - known[-1][0] > tolerance):
            expected[minute] = known[-1][1]
    how = {"stamp": stamp, "own_stamp": own_stamp, "tolerance": tolerance * 60, "outside": outside}
    source = open_source(bars_file(folder, bars), Reading(join=Join(path=vix_file(folder, rows), **how)))
    found = list(source.chunks())
    start = np.datetime64(START.astimezone(UTC).replace(tzinfo=None), "s")
    got = {
        int((at - start) // np.timedelta64(60, "s")): value
        for part in found
        for at, value in zip(part.date, part.vix_close, strict=True)
    }
    assert got == expected
    record = source.as_dict()["joined"]
    assert record["bars_joined"] + record["bars_with_an_older_value"] == len(expected)
    assert record["bars_left_out"] == len(bars) - len(expected)


def test_second_file_stamped_at_its_begin_gives_a_bar_stamped_at_its_end_no_later_close(tmp_path):
    bars = bars_file(tmp_path, [1, 2, 3])  # of 09:30 to 09:31 and so on
    vix = vix_file(tmp_path, [f"{local(minute)},{10 + minute}" for minute in range(4)])
    found, record = read(bars, vix, stamp="end", own_stamp="begin")
    assert found.vix_close.tolist() == [10, 11, 12]
    assert "whose begin is its time (by --join-time)" in record["known"]
    found, record = read(bars, vix, stamp="end")
    assert found.vix_close.tolist() == [11, 12, 13]
    assert "whose end is its time (as the bars' by --bar-time)" in record["known"]


def test_identity_of_a_join_without_a_stamp_of_its_own_is_unchanged(tmp_path):
    for own in (None, "end"):
        assert Join(path=tmp_path, stamp="end", own_stamp=own).as_list() == [
            "carry",
            None,
            "end",
            "America/New_York",
            None,
        ]
    assert Join(path=tmp_path, stamp="end", own_stamp="begin").as_list()[-1] == "begin"


def usual(minutes):
    steps, counts = np.unique(np.diff(minutes), return_counts=True)
    return int(steps[counts.argmax()])


def test_change_of_a_later_value_changes_no_bar_before_it(tmp_path):
    bars = bars_file(tmp_path, range(60))
    rows = [f"{local(minute)},{20 + minute / 100}" for minute in range(0, 60, 5)]
    before, _ = read(bars, vix_file(tmp_path, rows))
    rows[6] = f"{local(30)},99"  # known at 35 minutes, its bar's end
    after, _ = read(bars, vix_file(tmp_path, rows))
    changed = np.flatnonzero(before.vix_close != after.vix_close)
    start = np.datetime64(START.astimezone(UTC).replace(tzinfo=None), "s")
    assert before.date[changed[0]] - start == np.timedelta64(34, "m")  # the bar that ends at 35 minutes
    assert len(changed) == 5


def test_close_of_a_day_is_joined_from_the_next_midnight_on(tmp_path):
    """Cboe's file: a bar of the day itself must not get the close that ends it."""
    rows = [
        "02/28/2024,13,14,13,13.84",
        "03/07/2024,14,15,13,14.44",
        "03/08/2024,14,16,14,14.74",
        "03/11/2024,15,16,15,15.22",
    ]
    vix = vix_file(tmp_path, rows, "DATE,OPEN,HIGH,LOW,CLOSE")
    friday, weekend, monday, evening = 0, 24 * 60, 3 * 24 * 60 - 60, 3 * 24 * 60 + 8 * 60
    minutes = [friday, friday + 1, friday + 2, weekend, monday, evening]
    bars, record = read(bars_file(tmp_path, minutes), vix)
    assert bars.vix_close.tolist() == [14.44, 14.44, 14.44, 14.74, 14.74, 14.74]
    assert record["known"] == "from the midnight after its day"
    assert record["bars_with_an_older_value"] == 0  # over a weekend a day's close still counts


def test_days_get_the_close_of_their_own_day(tmp_path):
    path = tmp_path / "es.csv"
    path.write_text("date,open,high,low,close,volume\n" + "".join(f"2024-03-{d:02},1,1,1,1,1\n" for d in (7, 8, 11)))
    vix = vix_file(tmp_path, ["2024-03-07,14.44", "2024-03-08,.", "2024-03-11,15.22"], "observation_date,VIXCLS")
    bars, record = read(path, vix)
    assert bars.vix_close.tolist() == [14.44, 14.44, 15.22]
    assert record["column"] == "VIXCLS"


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("time,open,high,low,close", "{iso},1,1,1,20.5"),
        ("<DATE>;<TIME>;<CLOSE>", "{day};{clock};20,5"),
        ("", "{day} {clock},20.5"),
        ("Date,Open,High,Low,Close,Adj Close,Volume", "{iso},1,1,1,20.5,20.5,0"),
        ("\ufeffDateTime\tVIX", "{day} {clock}\t20.5"),
    ],
)
def test_layouts_of_exports_are_read(tmp_path, header, row):
    """SYNTHETIC files in the layouts of TradingView, MetaTrader, FirstRate, Yahoo and a tabbed export."""
    rows = []
    for minute in range(20):
        at = START + timedelta(minutes=minute)
        rows.append(row.format(iso=at.isoformat(), day=f"{at:%Y-%m-%d}", clock=f"{at:%H:%M:%S}"))
    bars, record = read(bars_file(tmp_path, range(20)), vix_file(tmp_path, rows, header))
    assert bars.vix_close.tolist() == [20.5] * 20
    assert record["bars_joined"] == 20


def test_newest_first_and_repeated_times_are_put_in_order(tmp_path):
    rows = [f"{local(minute)},{minute}" for minute in (9, 6, 6, 3, 0)]
    series = open_series(Join(path=vix_file(tmp_path, rows)))
    assert series.values.tolist() == [0, 3, 6, 9]


def test_value_outside_its_hours_follows_the_policy(tmp_path):
    bars = bars_file(tmp_path, range(0, 600, 10))
    vix = vix_file(tmp_path, [f"{local(minute)},20" for minute in range(0, 300, 10)])
    carried, record = read(bars, vix)
    assert len(carried) == 60
    assert record["bars_with_an_older_value"] == 20  # 100 minutes after the last value ten of its steps are over
    dropped, record = read(bars, vix, outside="drop")
    assert (len(dropped), record["bars_left_out"]) == (40, 20)
    with pytest.raises(TrainerError, match=r"RM581[\s\S]*too old"):
        read(bars, vix, outside="error")
    late = vix_file(tmp_path, [f"{local(300)},20", f"{local(310)},20"], name="late.csv")
    with pytest.raises(TrainerError, match=r"RM581[\s\S]*no value is known"):
        read(bars, late, outside="error")
    bars_after, record = read(bars, late)
    assert (len(bars_after), record["bars_left_out"]) == (30, 30)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("datetime,close\n2024-03-08 09:30:00,high\n", "RM513"),
        ("datetime,close\n2024-03-08 09:30:00,\n", "RM511"),
        ("datetime,a,b\n2024-03-08 09:30:00,1,2\n", "RM512"),
        ("", "RM511"),
    ],
)
def test_joined_file_that_cannot_be_used_is_an_error_with_its_code(tmp_path, text, code):
    path = tmp_path / "vix.csv"
    path.write_text(text)
    with pytest.raises(TrainerError, match=code):
        open_series(Join(path=path))


def test_joined_file_that_is_not_there_is_named_with_its_option(tmp_path):
    with pytest.raises(TrainerError, match=r"RM510[\s\S]*--join"):
        open_series(Join(path=Path(tmp_path / "absent.csv")))


DAYS = ["2024-03-07", "2024-03-08"]
JOINED = {
    "yfinance, three lines": "Price,Close,High,Low,Open,Volume\nTicker,^VIX,^VIX,^VIX,^VIX,^VIX\nDate,,,,,\n"
    + "".join(f"{day},14.5,15,14,14.2,0\n" for day in DAYS),
    "a bank's file in Windows-1252": '"Datum";"Zuletzt";"Eröffn."\n'
    + "".join(f'"{day}";"14,5";"14,2"\n' for day in DAYS),
    "a title in front": "VIX Historical Price Data\n\nDATE,CLOSE\n" + "".join(f"{day},14.5\n" for day in DAYS),
    "no header": "".join(f"{day},14.5\n" for day in DAYS),
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("packed", ["", ".gz", ".zip", ".xz"])
def test_joined_file_is_read_as_bars_are(tmp_path, name, packed):
    content = JOINED[name].encode("cp1252")
    path = tmp_path / f"vix.csv{packed}"
    if packed == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vix.csv", content)
    else:
        path.write_bytes({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[packed](content))
    assert open_series(Join(path=path)).values.tolist() == [14.5, 14.5]


def test_joined_table_of_arrow_without_a_row_is_empty(tmp_path):
    pl.DataFrame({"date": [], "close": []}).write_parquet(path := tmp_path / "vix.parquet")
    with pytest.raises(TrainerError, match="RM51"):
        open_series(Join(path=path))


def test_column_of_the_joined_file_is_chosen_by_columns(tmp_path):
    vix = vix_file(tmp_path, [f"{local(0)},1,20"], "datetime,a,VIX9D")
    bars = bars_file(tmp_path, range(3))
    for column in ("VIX9D", "3"):
        reading = Reading(join=Join(path=vix, column=column), columns=(("vix_close", column),))
        assert joined(list(open_source(bars, reading).chunks())).vix_close.tolist() == [20, 20, 20]


def test_bars_with_a_vix_of_their_own_take_no_second_one(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("date,open,high,low,close,volume,vix\n2024-03-07,1,1,1,1,1,14\n")
    with pytest.raises(TrainerError, match="of their own"):
        open_source(path, Reading(join=Join(path=path)))
