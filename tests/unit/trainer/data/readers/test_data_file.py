from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.bar_files import read_whole
from trainer.data.bar import Bars
from trainer.data.readers.data_file import digest_of
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import SAMPLE

HEADER = "date,open,high,low,close,volume,vix_close"
GOOD = "2014-01-03,10,12,9,11,1000,13.5"
NEXT = "2014-01-06,11,12,10,11,1000,13.5"


def refusal(folder: Path, *lines: str, end: str = "\n") -> TrainerError:
    path = folder / "bars.csv"
    path.write_text("\n".join(lines) + end)
    with pytest.raises(TrainerError) as caught:
        read_whole(path)
    assert str(path) in caught.value.where
    return caught.value


def test_sample_matches_its_note() -> None:
    bars, file = read_whole(SAMPLE)
    note = SAMPLE.with_name("SOURCE.md").read_text()
    assert f"{len(bars):,} trading days, {bars.date[0].astype('M8[D]')} to {bars.date[-1].astype('M8[D]')}" in note
    assert file.sha256 == digest_of(SAMPLE) == hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    assert file.source is not None
    assert file.source.startswith("arch 8.0.0")


def test_source_is_claimed_only_for_the_very_bytes(tmp_path: Path) -> None:
    copy = tmp_path / SAMPLE.name
    copy.write_bytes(SAMPLE.read_bytes().replace(b"1833.21", b"1833.22"))
    (tmp_path / "SOURCE.md").write_bytes(SAMPLE.with_name("SOURCE.md").read_bytes())
    assert read_whole(copy)[1].source is None


def test_written_bars_are_read_back(make_bars: Callable[..., Bars], write_csv: Callable[[Bars], Path]) -> None:
    bars = make_bars(50)
    again, file = read_whole(write_csv(bars))
    assert file.name == "bars.csv"
    for name, values in vars(bars).items():
        np.testing.assert_array_equal(getattr(again, name), values)


def test_columns_may_stand_in_any_order_with_others_between(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    path.write_text(
        "\ufeffnote,VIX_Close,volume, close ,low,high,open,date\nx,13.5,1000,11,9,12,10,2014-01-03 09:31\n\n"
    )
    bars, _ = read_whole(path)
    assert (bars.open[0], bars.high[0], bars.low[0], bars.close[0]) == (10, 12, 9, 11)
    assert str(bars.date[0]) == "2014-01-03T14:31:00"  # UTC; the file has New York wall clock


def test_bars_cannot_be_written_to(make_bars: Callable[..., Bars]) -> None:
    bars = make_bars(30)
    with pytest.raises(ValueError, match="read-only"):
        bars.close[0] = 1.0


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("2014-01-06,11,12,10,11,1000", "RM513", "6 cells where the header has 7"),
        (NEXT + ",1", "RM513", "8 cells"),
        ("2014-01-06,11,12,10,eleven,1000,13.5", "RM513", "'eleven' in column close"),
        ("2014-01-06,11,12,10,11,,13.5", "RM513", "'' in column volume"),
        ("06/01/2014,11,12,10,11,1000,13.5", "RM513", "'06/01/2014' is no date"),
        ("2014-01-06T09:30:00Z,11,12,10,11,1000,13.5", "RM513", "is no date as the others are"),
        ("2014-01-06,11,12,10,11,1e308,13.5", "RM514", "up to 1e12"),
        ("2014-01-06,11,12,10,1e308,1000,13.5", "RM514", "up to 1e12"),
        ("2014-01-06,11,12,10,nan,1000,13.5", "RM514", "no finite number above zero"),
        ("2014-01-06,11,12,10,inf,1000,13.5", "RM514", "no finite number above zero"),
        ("2014-01-06,11,12,10,11,1000,0", "RM514", "VIX"),
        ("2014-01-06,11,12,10,11,-1,13.5", "RM514", "volume"),
        ("2014-01-06,11,10,12,11,1000,13.5", "RM514", "high is below low"),
        ("2014-01-06,13,12,10,11,1000,13.5", "RM514", "open is outside"),
        ("2014-01-06,11,12,10,9.5,1000,13.5", "RM514", "close is outside"),
        ("2014-01-03,11,12,10,11,1000,13.5", "RM515", "not later"),
        ("2014-01-02,11,12,10,11,1000,13.5", "RM515", "not later"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, line: str, code: str, says: str) -> None:
    error = refusal(tmp_path, HEADER, GOOD, line)
    assert error.code == code
    assert says in error.what
    assert error.where.endswith("line 3")


def test_blank_lines_count_as_lines(tmp_path: Path) -> None:
    assert refusal(tmp_path, HEADER, GOOD, "", "2014-01-06,1").where.endswith("line 4")


def test_missing_column_names_the_nearest(tmp_path: Path) -> None:
    error = refusal(tmp_path, "date,open,high,low,clsoe,volume,vix_close", GOOD)
    assert error.code == "RM512"
    assert "'close'" in error.what
    assert "did you mean clsoe" in error.what


@pytest.mark.parametrize("lines", [[""], [HEADER], [HEADER, "", ""]])
def test_file_without_bars_is_empty(tmp_path: Path, lines: list[str]) -> None:
    assert refusal(tmp_path, *lines).code == "RM511"


def test_file_of_no_bytes_is_empty(tmp_path: Path) -> None:
    assert refusal(tmp_path, "", end="").code == "RM511"


def test_last_line_without_end_is_cut_off(tmp_path: Path) -> None:
    assert refusal(tmp_path, HEADER, GOOD, NEXT[:-1], end="").code == "RM516"


@pytest.mark.parametrize("name", ["absent.csv", ".", "bars.csv/below"])
def test_path_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "bars.csv").write_text("x")
    with pytest.raises(TrainerError, match="RM510"):
        read_whole(tmp_path / name)


@pytest.mark.parametrize("content", [b"date\xff\n", b"dat\x00e\n", b'date,"open\n'])
def test_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bars.csv").write_bytes(content)
    with pytest.raises(TrainerError, match="RM510"):
        read_whole(tmp_path / "bars.csv")


@given(st.data())
def test_truncation_inside_a_line_is_always_seen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = SAMPLE.read_bytes()
    length = data.draw(st.integers(0, len(content) - 1).filter(lambda n: content[n - 1 : n] != b"\n"))
    path = tmp_path_factory.mktemp("cut") / "bars.csv"
    path.write_bytes(content[:length])
    with pytest.raises(TrainerError) as caught:
        read_whole(path)
    assert caught.value.code == ("RM516" if length else "RM511")
