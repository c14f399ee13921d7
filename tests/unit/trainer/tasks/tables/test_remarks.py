"""What is printed of a table's columns before it is learned from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.configs import prepared
from tests.fixtures.table_tasks import refused
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables.remarks import counted, is_coded, listed

ROWS = 80
COUNT = range(ROWS)


def printed(folder: Path, capfd: pytest.CaptureFixture[str], **columns: Sequence[object]) -> str:
    """Return what preparing a table of these columns and a target prints."""
    target = [f"{(7 * row % ROWS) / 8:.3f}" for row in COUNT]
    made = {name: [str(cell) for cell in cells] for name, cells in columns.items()} | {"y": target}
    pl.DataFrame(made).write_csv(folder / "table.csv")
    prepared(data=folder / "table.csv", target="y")
    return capfd.readouterr().err


def test_column_that_never_changes_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "constant in the training part, so without use: one\n" in printed(tmp_path, capfd, one=[1] * ROWS, x=COUNT)
    assert "constant" not in printed(tmp_path, capfd, x=COUNT)


@pytest.mark.parametrize(("marks", "named"), [(20, True), (0, False), (76, False)])
def test_column_of_words_that_holds_numbers_is_named_with_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], marks: int, named: bool
) -> None:
    found = printed(tmp_path, capfd, crp=[*["<5"] * marks, *[1 + row % 7 for row in range(ROWS - marks)]], x=COUNT)
    assert ("column 'crp' is read as words, though 75% of its cells are numbers" in found) is named
    assert ("'<5'" in found) is named


def test_column_of_numbers_with_several_units_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = printed(tmp_path, capfd, seen=[f"{row % 11}{'KM'[row % 2]}" for row in COUNT], x=COUNT)
    assert "'seen' is read as words, though numbers with 'K' or 'M' behind are in it" in found


@pytest.mark.parametrize(("value", "named"), [("1e12", True), ("1e3", False)])
def test_column_that_a_huge_value_makes_one_number_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], value: str, named: bool
) -> None:
    found = printed(tmp_path, capfd, x=COUNT, z=[value if row == 5 else row % 9 for row in COUNT])
    assert ("nearly all values of 'z' are within" in found) is named
    assert "values of 'x'" not in found


def test_codes_with_zeros_in_front_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = printed(tmp_path, capfd, zip_code=["01234", "10001"] * (ROWS // 2), x=COUNT)
    assert "without the zeros in front: zip_code (--categories keeps codes)" in found


@pytest.mark.parametrize(
    ("cells", "coded"),
    [
        (["01234", "10001", "n/a"], True),
        (["1234", "10001"], False),
        (["0.5", "0.7"], False),
        (["00", "1"], False),
        (["01", "x"], False),
        ([""], False),
    ],
)
def test_codes_are_digits_of_one_length_with_a_zero_in_front(cells: list[str], coded: bool) -> None:
    assert is_coded(pl.Series(cells)) is coded
    assert not is_coded(pl.Series([1, 10]))


def test_time_that_orders_the_rows_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 3, 20), eager=True).to_list()
    assert "split by the time in 'day'" in printed(tmp_path, capfd, day=days, x=COUNT)


def test_rows_that_are_too_few_are_answered_with_how_many_there_must_be(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{row},{row * 3 % 50}.5\n" for row in range(63)))
    with pytest.raises(TrainerError, match="RM517") as caught:
        prepared(data=path, target="y")
    assert "at least 64 rows" in caught.value.next and "horizon" not in caught.value.next
    path.write_text("x,y\n" + "".join(f"{row},{row * 3 % 50}.5\n" for row in range(64)))
    assert len(prepared(data=path, target="y").split.test.target) == 10


def test_counts_and_lists_are_written_as_people_do() -> None:
    assert (counted(1, "row"), counted(1000, "row"), counted(0, "row")) == ("1 row", "1,000 rows", "0 rows")
    assert listed([str(n) for n in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"


@pytest.mark.parametrize(
    ("dates", "named"),
    [
        (["2014-01-05", "1/2/2014", "20140103"], True),  # the last reads as a number, too
        (["red", "blue"], False),
        (["2014-01-05", "2014-01-06"], False),
    ],
)
def test_dates_that_stay_words_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], dates: list[str], named: bool
) -> None:
    found = printed(tmp_path, capfd, seen=[dates[row % len(dates)] for row in COUNT], x=COUNT)
    assert ("column 'seen' looks like dates of several forms" in found) is named


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("NA", "1 times are missing in column 'date'"),
        ("7.3.2014", "'7.3.2014' in column 'date' is no time written as '2014-01-01'"),
    ],
)
def test_row_without_a_time_is_answered_by_what_it_has(tmp_path: Path, cell: str, what: str) -> None:
    rows = [f"{f'2014-01-{1 + row % 28:02}' if row != 50 else cell},{row},{row % 7}" for row in COUNT]
    (path := tmp_path / "t.csv").write_text("\n".join(["date,x,y", *rows]) + "\n")
    error = refused(path, "RM580")
    assert error.what.startswith(what) and error.where.endswith("line 52")


def test_table_of_times_and_a_target_alone_is_answered_with_them(tmp_path: Path) -> None:
    rows = [f"2014-01-{1 + row % 28:02},{row}" for row in COUNT]
    (path := tmp_path / "t.csv").write_text("\n".join(["date,y", *rows]) + "\n")
    assert "'date' orders the rows" in refused(path, "RM580").what
