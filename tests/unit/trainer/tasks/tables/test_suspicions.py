"""Numbers that stand for a missing value, and words that differ by case alone; all SYNTHETIC."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.table_tasks import task_of
from trainer.data.tables.encoding import parse_cells
from trainer.tasks.tables.suspicions import alike, sentinel


def found(*cells: float) -> float | None:
    parsed = parse_cells(pl.Series([*map(str, cells)]))
    answer = sentinel(parsed, ~parsed.missing)
    return answer and answer[0]


TEMPERATURES = [place * 0.7 - 5 for place in range(40)]


@pytest.mark.parametrize("number", [-999.0, -9999.0, 9999.0, -200.0, 999.0])
def test_number_apart_from_all_others_is_named(number: float) -> None:
    assert found(*TEMPERATURES, number, number) == number


def test_minus_one_among_counts_and_numbers_within_the_range_are_values() -> None:
    assert found(*range(40), -1, -1) is None
    assert found(*range(2000), 999, 999) is None
    assert found(*TEMPERATURES, -999) is None  # once may be a value
    assert found(*range(990, 1000), 999, 999) is None
    assert found(-999, -999, 1, 1, 2, 2) is None  # a code of three


def test_sentinel_below_prices_wider_than_their_gap_is_named() -> None:
    assert found(*range(0, 990, 3), -999, -999) == -999


def test_words_that_differ_by_case_blanks_or_dashes_are_one_group() -> None:
    assert alike(["Yes", "yes", "YES ", "no", "NY", "n y", "-", "+"]) == [["Yes", "yes", "YES "], ["NY", "n y"]]


def test_signs_and_ranges_of_digits_are_no_differences_of_words() -> None:
    assert alike(["-1", "1", "1-4", "14", "0.4", "0.4-", "COVID-19", "covid 19"]) == [["COVID-19", "covid 19"]]


@pytest.mark.parametrize(("last", "named"), [("Total", True), ("Gesamt", True), ("red", False), ("", False)])
def test_last_row_that_seems_to_be_a_sum_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: str, named: bool
) -> None:
    lines = [f"{('red', 'blue')[row % 2]},{row * 0.5}" for row in range(90)]
    (path := tmp_path / "t.csv").write_text("\n".join(["x,y", *lines, f"{last},2002.5"]) + "\n")
    task_of(path)
    assert (f"the last row has {last!r} in 'x'" in capsys.readouterr().err) is named


def test_word_that_other_rows_have_too_is_no_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{('part', 'total')[row % 2]},{row * 0.5}" for row in range(90)]
    (path := tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    task_of(path)
    assert "the last row has" not in capsys.readouterr().err


def test_table_names_both_before_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{-999 if row % 9 == 0 else row * 0.5},{('Yes', 'yes', 'no')[row % 3]}" for row in range(90)]
    (path := tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    task_of(path)
    stderr = capsys.readouterr().err
    assert "-999 stands in 10 cells of 'x', and all others lie within 0.5 to 44.5" in stderr
    assert "in 'y' these differ by case or blanks alone, and count as different words: 'Yes', 'yes'" in stderr
