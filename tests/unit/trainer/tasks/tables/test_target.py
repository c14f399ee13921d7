"""The target of a table: a number or classes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.table_tasks import refused, task_of
from tests.fixtures.tables import mixed, written


def test_target_decides_between_classes_and_a_number(tmp_path: Path) -> None:
    table = mixed().with_columns(pl.Series("few", [n % 3 for n in range(300)]), pl.Series("many", range(300)))
    path = written(table, tmp_path)
    assert task_of(path, target="few").labels == ("0", "1", "2")
    assert task_of(path, target="few", task="regression").labels is None
    assert task_of(path, target="many").labels is task_of(path, target="z").labels is None
    assert refused(path, "RM580", task="regression").what == "the target 'no' is no number"


def test_target_with_decimal_commas_is_no_classes(tmp_path: Path) -> None:
    table = mixed(gaps=False)
    path = tmp_path / "comma.csv"
    table.with_columns(table["z"].cast(pl.String).str.replace(".", ",", literal=True)).write_csv(path, separator=";")
    error = refused(path, "RM580", target="z")
    assert "comma" in error.what and error.where == f"{path}, line 2"


def test_classes_may_be_numbers_and_a_word(tmp_path: Path) -> None:
    grades = [("1", "2", "3", "none given")[(row % 50 == 0) * 3 or row % 3] for row in range(300)]
    task = task_of(written(mixed().with_columns(y=pl.Series(grades)), tmp_path))
    assert task.labels == ("1", "2", "3", "none given")


@pytest.mark.parametrize("flag", ["ignore", "categories"])
def test_target_is_not_left_out_too(table: Path, flag: str) -> None:
    error = refused(table, "RM500", **{flag: ("y",)})
    assert f"--{flag}" in error.what and "--target" in error.what
