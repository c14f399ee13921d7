"""Lines of a CSV file to rows: dialects, blank lines, quotes, ragged and cut-off lines, and numbers of lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.data.readers.column_names import Columns
from trainer.data.readers.csv_rows import Dialect, find_dialect, read_text, text_rows
from trainer.data.readers.stream import LineBlock
from trainer.runtime.errors import TrainerError

HEADER = "date,open,high,low,close,volume\n"
BARS = "2024-01-02,1,2,0.5,1.5,10\n2024-01-03,1.5,2,1,1,20\n"
THREE = Dialect(separator=",", decimal=".", header=0, columns=Columns(names=("a", "b", "c"), place={}, clock=None))


def write(folder: Path, text: str) -> Path:
    path = folder / "bars.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def rows(text: str, *, cut_off: bool = False, header: int = 0) -> tuple[list[int], list[tuple[str, ...]], list[int]]:
    """Return line numbers, cells and their counts of a block that begins with line 1."""
    dialect = Dialect(**{**vars(THREE), "header": header})
    found = text_rows(LineBlock(text=text.encode(), first=1, cut_off=cut_off), dialect, Path("x.csv"))
    return found.line.tolist(), found.table.rows(), found.cells.tolist()


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        (HEADER + BARS, ",", "."),
        ((HEADER + BARS).replace(",", ";"), ";", "."),
        ((HEADER + BARS).replace(",", "\t"), "\t", "."),
        ((HEADER + BARS).replace(",", ";").replace(".", ","), ";", ","),
    ],
)
def test_dialect_is_that_of_the_file(tmp_path: Path, text: str, separator: str, decimal: str) -> None:
    found, sample = find_dialect(write(tmp_path, text))
    assert (found.separator, found.decimal, found.header, found.scale) == (separator, decimal, 1, 1.0)
    assert sample.line.tolist() == [2, 3]
    assert {name: found.columns.place[name] for name in ("open", "high", "low", "close", "volume")} == {
        "open": 1, "high": 2, "low": 3, "close": 4, "volume": 5,
    }  # fmt: skip


def test_second_volume_is_read_where_the_first_is_zero(tmp_path: Path) -> None:
    header = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n"
    row = "2024.01.02\t10:00:00\t1\t2\t1\t1\t{}\t{}\t3\n"
    places = []
    for ticks, volume in ((7, 0), (7, 9)):
        found, _ = find_dialect(write(tmp_path, header + row.format(ticks, volume) * 2))
        places.append(found.columns.place["volume"])
    assert places == [6, 7]  # exchange volume where there is any, else ticks


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "RM511"),
        ("\n\n", "RM511"),
        ("date,open", "RM516"),
        ('date,"op', "RM516"),
        (HEADER + '2024-01-02,"1\n2",2,0.5,1.5,10\n', "RM510"),
    ],
)
def test_file_without_a_whole_header_or_with_a_break_in_quotes_is_refused(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(TrainerError) as caught:
        find_dialect(write(tmp_path, text))
    assert caught.value.code == code


def test_header_and_blank_lines_are_left_out_and_lines_keep_their_numbers() -> None:
    text = "note\na,b,c\n\n1,2,3\n\r\n,,\n4,5,6\n"
    assert rows(text, header=2) == ([4, 7], [("1", "2", "3"), ("4", "5", "6")], [3, 3])


def test_quoted_cells_are_read_whole_and_ragged_rows_keep_their_count() -> None:
    text = '1,"2,5",3\n1,2\n1,2,3,4\n1,2,3,,\n'
    line, cells, count = rows(text)
    assert line == [1, 2, 3, 4]
    assert cells == [("1", "2,5", "3"), ("1", "2", ""), ("1", "2", "3"), ("1", "2", "3")]
    assert count == [3, 2, 4, 3]  # a separator at the end is no cell; one with content is


def test_line_that_is_cut_off_is_left_out() -> None:
    assert rows("1,2,3\n4,5", cut_off=True) == ([1], [("1", "2", "3")], [3])
    assert rows("4,5", cut_off=True) == ([], [], [])


@pytest.mark.parametrize(
    ("last", "remark"),
    [("Total rows: 2", True), ("(2 rows)", True), ("2024-01-0", False), ("数据来源", True), ("1,2,3", False)],
)
def test_last_row_of_words_is_a_remark(last: str, remark: bool) -> None:
    text = f'1,2,3\n"{last}"\n' if last != "1,2,3" else f"1,2,3\n{last}\n"
    found = text_rows(LineBlock(text=text.encode(), first=1), THREE, Path("x.csv"))
    assert found.ends_with_remark() is remark
    assert found.without_last().line.tolist() == [1]
    assert found.turned().line.tolist() == [2, 1]
    assert found.turned().table.rows()[1] == ("1", "2", "3")


@pytest.mark.parametrize("lines", [1, 2, 1000])
def test_rows_are_the_same_however_many_lines_are_read_at_a_time(tmp_path: Path, lines: int) -> None:
    text = HEADER + "".join(f"2024-01-{day:02},1,2,0.5,1.5,{day}\n" + "\n" * (day % 3 == 0) for day in range(1, 29))
    path = write(tmp_path, text)
    dialect, _ = find_dialect(path)
    parts = list(read_text(path, dialect, lines))
    assert [row[5] for part in parts for row in part.table.rows()] == [str(day) for day in range(1, 29)]
    number = [line for part in parts for line in part.line.tolist()]
    written = text.split("\n")
    assert [written[line - 1].split(",")[5] for line in number] == [str(day) for day in range(1, 29)]
