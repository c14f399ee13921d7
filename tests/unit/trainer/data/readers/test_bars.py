"""Every kind of file and of bad row: reported with its line, handled by the policy, counted."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.bar_files import HEADER, ROWS, read, write
from tests.left_out import one_of
from trainer.data.bar import Bars
from trainer.data.readers.bars import Reading, columns_of, open_source
from trainer.data.readers.joined_series import Join
from trainer.runtime.errors import TrainerError


def same(one: Bars, other: Bars) -> bool:
    return all(np.array_equal(v, getattr(other, n)) for n, v in vars(one).items() if v is not None)


def test_gzip_and_utf_16_and_zstd_are_read_as_what_they_hold(tmp_path: Path) -> None:
    plain = write(tmp_path, [HEADER, *ROWS])
    expected = read(plain)[0]
    packed = tmp_path / "bars.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert same(read(packed)[0], expected)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
        coded = tmp_path / "coded.csv"
        coded.write_bytes(plain.read_text().encode(encoding))
        assert same(read(coded)[0], expected)
    zstandard = pytest.importorskip("zstandard", reason="Python before 3.14 reads zstd with the package zstandard")
    packed = tmp_path / "bars.csv.zst"
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert same(read(packed)[0], expected)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(TrainerError, match="RM516"):
        read(packed)


@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_parquet_and_arrow_hold_the_same_bars(tmp_path: Path, kind: str, chunk_size: int) -> None:
    expected = read(write(tmp_path, [HEADER, *ROWS]))[0]
    table = pl.DataFrame({name.title(): getattr(expected, name) for name in ("open", "high", "low", "close", "volume")})
    time = pl.Series("Date", expected.date.astype("M8[us]")).dt.replace_time_zone("UTC")
    path = tmp_path / "bars.bin"
    frame = table.with_columns(time)
    frame.write_parquet(path) if kind == "parquet" else frame.write_ipc(path)
    assert same(read(path, chunk_size=chunk_size)[0], expected)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TrainerError, match="RM516"):
        read(path)


@given(chunk_size=st.integers(1, 40))
def test_chunk_size_changes_nothing_that_is_read(tmp_path_factory: pytest.TempPathFactory, chunk_size: int) -> None:
    path = write(tmp_path_factory.mktemp("bars"), [HEADER, *ROWS[:9], "", *ROWS[9:]])
    assert same(read(path, chunk_size=chunk_size)[0], read(path)[0])


@pytest.mark.parametrize(
    ("header", "row", "shown"),
    [
        ("Date;Open;High;Low;Close;Volume", "04.03.2024 09:30;10,5;12,5;9,5;11,5;100", "2024-03-04T14:30:00"),
        ("<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>",
         "2024.03.04\t09:30:00\t10.5\t12.5\t9.5\t11.5\t100",
         "2024-03-04T14:30:00"),
        ("Timestamp,O,H,L,C,V", "2024-03-04T09:30:00-05:00,10.5,12.5,9.5,11.5,100", "2024-03-04T14:30:00"),
        ("timestamp,open,high,low,close,volume", "1709562600,10.5,12.5,9.5,11.5,100", "2024-03-04T14:30:00"),
        ("timestamp,open,high,low,close,volume", "1709562600000,10.5,12.5,9.5,11.5,100", "2024-03-04T14:30:00"),
        ("Date,Close/Last,Volume,Open,High,Low", "03/24/2024,11.5,100,10.5,12.5,9.5", "2024-03-24T00:00:00"),
        ('"Date","Open","High","Low","Close","Vol"', '"20240304 09:30:00","10.5","12.5","9.5","11.5","100"',
         "2024-03-04T14:30:00"),
        ("dt|time|open|high|low|close|volume|date", "x|09:30|10.5|12.5|9.5|11.5|100|20240304", "2024-03-04T14:30:00"),
    ],
)  # fmt: skip
def test_usual_spellings_are_understood(tmp_path: Path, header: str, row: str, shown: str) -> None:
    bars, _ = read(write(tmp_path, [header, row]))
    assert (bars.open[0], bars.high[0], bars.low[0], bars.close[0], bars.volume[0]) == (10.5, 12.5, 9.5, 11.5, 100)
    assert str(bars.date[0]) == shown


def test_day_and_a_month_that_can_be_exchanged_are_not_guessed(tmp_path: Path) -> None:
    rows = [f"0{day}/0{day + 1}/2024,10,12,9,11,100" for day in (1, 2, 3)]
    with pytest.raises(TrainerError, match="RM574"):
        read(write(tmp_path, [HEADER, *rows]))
    path = write(tmp_path, [HEADER, *rows])
    assert str(read(path, time_format="%d/%m/%Y")[0].date[0]) == "2024-02-01T00:00:00"
    later = [*rows, "25/12/2024,10,12,9,11,100"]
    assert str(read(write(tmp_path, [HEADER, *later]))[0].date[0]) == "2024-02-01T00:00:00"


@pytest.mark.parametrize("zone", ["America/Nowhere", ""])
def test_unknown_zone_is_named(tmp_path: Path, zone: str) -> None:
    with pytest.raises(TrainerError, match="RM573"):
        read(write(tmp_path, [HEADER, *ROWS]), zone=zone)


def test_column_that_stands_twice_is_named_with_both_places(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="RM512") as caught:
        read(write(tmp_path, [HEADER + ",Close", *(row + ",1" for row in ROWS)]))
    assert "5 ('close') and 7 ('Close')" in caught.value.what


# kind, what stands in line 12 instead of the eleventh row, how many bars `drop` and `repair` leave of 30
BAD = [
    ("cells", "2024-03-04 09:10,13,15,12,14", 29, 29),
    ("cells", "2024-03-04 09:10,13,15,12,14,110,1", 29, 29),
    ("time", "yesterday,13,15,12,14,110", 29, 29),
    ("missing", "2024-03-04 09:10,13,15,12,,110", 29, 30),
    ("number", "2024-03-04 09:10,13,15,12,14,1.1e", 29, 30),
    ("price", "2024-03-04 09:10,13,15,12,NaN,110", 29, 30),
    ("price", "2024-03-04 09:10,13,15,12,-14,110", 29, 30),
    ("volume", "2024-03-04 09:10,13,15,12,14,-110", 29, 30),
    ("volume", "2024-03-04 09:10,13,15,12,14,1e308", 29, 30),
    ("range", "2024-03-04 09:10,13,12,15,14,110", 29, 30),
    ("outside", "2024-03-04 09:10,16,15,12,14,110", 29, 30),
    ("duplicate", "2024-03-04 09:09,13,15,12,14,110", 29, 29),
    ("unsorted", "2024-03-04 08:10,13,15,12,14,110", 29, 30),
    ("zone", "2024-03-04 09:10:00-05:00,13,15,12,14,110", 29, 30),
]


@pytest.mark.parametrize("chunk_size", one_of([11, 1, 1000]))
@pytest.mark.parametrize(("kind", "line", "dropped", "repaired"), BAD)
def test_bad_row_is_refused_dropped_or_repaired_and_counted(
    tmp_path: Path, kind: str, line: str, dropped: int, repaired: int, chunk_size: int
) -> None:
    path = write(tmp_path, [HEADER, *ROWS[:10], line, *ROWS[11:]])
    with pytest.raises(TrainerError) as caught:
        read(path, chunk_size=chunk_size)
    assert caught.value.where == f"{path}, line 12"
    for policy, left in (("drop", dropped), ("repair", repaired)):
        bars, source = read(path, chunk_size=chunk_size, on_bad_row=policy)
        counts = source.bad.as_dict()
        assert len(bars) == left
        assert counts["dropped" if left == 29 else "repaired"] == {kind: 1}
        assert counts["repaired" if left == 29 else "dropped"] == {}
        assert counts["first_lines"] == {kind: [12]}
        assert "line 12" in source.bad.summary()
        assert (np.diff(bars.date).astype(int) > 0).all()
        assert (bars.low <= np.minimum(bars.open, bars.close)).all()
        assert (bars.high >= np.maximum(bars.open, bars.close)).all()


def test_sound_file_counts_nothing(tmp_path: Path) -> None:
    for policy in ("error", "drop", "repair"):
        _, source = read(write(tmp_path, [HEADER, *ROWS]), on_bad_row=policy)
        assert source.bad.as_dict() == {"policy": policy, "dropped": {}, "repaired": {}, "first_lines": {}}
        assert source.bad.summary() == ""


@pytest.mark.parametrize("packed", [False, True])
def test_truncated_file_keeps_its_whole_lines_under_drop(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path, [HEADER, *ROWS])
    content = gzip.compress(path.read_bytes())[:-12] if packed else path.read_bytes()[:-5]
    path.write_bytes(content)
    with pytest.raises(TrainerError, match="RM516"):
        read(path)
    bars, source = read(path, on_bad_row="drop")
    assert 25 <= len(bars) < 30 if not packed else len(bars) <= 30
    assert source.bad.dropped == {"cut_off": 1}


def test_entries_of_columns_are_split_at_the_first_equals_sign() -> None:
    assert columns_of(["date=Time", "close=a=b", "vix="]) == (("date", "Time"), ("close", "a=b"), ("vix", ""))
    assert columns_of([]) == ()


@pytest.mark.parametrize(
    ("cell", "zone"),
    [
        ("2024-03-04", None),
        ("2024-03-04 09:30", "America/New_York"),
        ("2024-03-04T09:30:00-05:00", "in the data"),
        ("1709562600", "UTC"),
    ],
)
def test_zone_is_that_of_the_times_and_none_for_days(tmp_path: Path, cell: str, zone: str | None) -> None:
    path = write(tmp_path, [HEADER, f"{cell},10,12,9,11,100"])
    source = open_source(path, Reading())
    assert source.zone == source.as_dict()["time_zone"] == zone


def test_source_records_how_the_file_was_understood(tmp_path: Path) -> None:
    source = open_source(
        write(tmp_path, ["Date;Open;High;Low;Close;Volume", "04.03.2024 09:30;1,5;2;1;1,5;1"]), Reading()
    )
    found = source.as_dict()
    assert (found["separator"], found["decimal"]) == (";", ",")
    assert found["columns"]["close"] == "Close"
    assert not {"newest_first", "joined", "layout"} & found.keys()


def test_file_with_the_newest_bar_first_is_read_from_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, [HEADER, *ROWS[::-1]])
    bars, source = read(path, chunk_size=7)
    assert source.newest_first and source.as_dict()["newest_first"]
    assert same(bars, read(write(tmp_path, [HEADER, *ROWS], "old.csv"))[0])


@pytest.mark.parametrize(("lines", "end", "code"), [([HEADER], "\n", "RM511"), ([HEADER, ROWS[0]], "", "RM516")])
def test_file_without_a_whole_bar_is_refused(tmp_path: Path, lines: list[str], end: str, code: str) -> None:
    with pytest.raises(TrainerError) as caught:
        open_source(write(tmp_path, lines, end=end), Reading())
    assert caught.value.code == code


def test_repaired_order_counts_bars_that_then_stand_twice(tmp_path: Path) -> None:
    bars, source = read(write(tmp_path, [HEADER, *ROWS[5:], *ROWS[:6]]), on_bad_row="repair", chunk_size=4)
    assert len(bars) == 30
    assert source.bad.dropped["duplicate"] == 1
    again = [len(found) for found in source.chunks()]
    assert sum(again) == 30 and source.bad.dropped["duplicate"] == 1  # counts begin anew


def test_joined_series_next_to_a_column_of_its_own_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [f"{HEADER},vix", *(f"{row},15" for row in ROWS)])
    reading = Reading(join=Join(path=write(tmp_path, ["date,close", "2024-03-04,15"], "vix.csv")))
    with pytest.raises(TrainerError, match="RM500") as caught:
        open_source(path, reading)
    assert "--join" in str(caught.value.what)


@pytest.mark.parametrize("role", ["date", "close", "volume"])
@pytest.mark.parametrize(
    "column", [pl.Series([["1"], ["2"]]), pl.Series([b"\xff", b"1"]), pl.Series([{"a": 1}, {"a": 2}])], ids=str
)
def test_typed_column_of_no_number_is_refused_by_its_name(tmp_path: Path, role: str, column: pl.Series) -> None:
    table = {
        "date": ["2024-03-04", "2024-03-05"],
        **{name: [1.0, 1.0] for name in ("open", "high", "low", "close", "volume")},
    }
    path = tmp_path / "bars.parquet"
    pl.DataFrame(table | {role: column}).write_parquet(path)
    with pytest.raises(TrainerError, match="RM512") as caught:
        open_source(path, Reading())
    assert f"column {role!r}, taken as {role}" in caught.value.what
    assert f"--columns {role}=NAME" in caught.value.next
