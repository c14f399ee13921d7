"""Inputs of a table: identifiers, times and words among its columns."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.table_tasks import columns, refused, task_of
from tests.fixtures.tables import hours, mixed, written


def test_column_that_reads_as_times_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = [hours(10)[row % 10] for row in range(300)]
    task_of(written(mixed().with_columns(pl.Series("when", few)), tmp_path))
    assert "column 'when' reads as times, and rows are split without regard to it; --time-column when" in (
        capsys.readouterr().err
    )
    error = refused(written(mixed().with_columns(pl.Series("when", hours(300))), tmp_path), "RM582")
    assert error.next.startswith("If these are the rows' times, give --time-column when. Leave it out")
    task_of(written(mixed(), tmp_path))
    assert "times" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("PassengerId", list(range(1, 301))),
        ("customer_id", [f"C{row:04}" for row in range(300)]),
        ("ID", list(range(300, 0, -1))),
        ("Unnamed: 0", list(range(300))),
    ],
)
def test_identifier_is_left_out_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, values: list[object]
) -> None:
    path = written(mixed().with_columns(pl.Series(name, values)), tmp_path)
    task = task_of(path)
    assert name not in columns(task)
    assert task.made["ignored"] == [name]
    assert f"left out as identifiers, another value in every row: {name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("humid", list(range(300))),  # no word that ends in id
        ("paid", list(range(300))),
        ("shop_id", [row % 299 for row in range(300)]),  # one comes twice
        ("grid", list(range(300))),
        ("fluid_id", [row / 2 for row in range(300)]),  # no whole numbers
        ("价格", list(range(300))),
    ],
)
def test_column_that_is_no_identifier_stays(tmp_path: Path, name: str, values: list[object]) -> None:
    assert name in columns(task_of(written(mixed().with_columns(pl.Series(name, values)), tmp_path)))


def test_identifier_is_kept_on_request(tmp_path: Path) -> None:
    path = written(mixed().with_columns(pl.Series("PassengerId", list(range(300)))), tmp_path)
    assert "PassengerId" in columns(task_of(path, identifiers="keep"))


def test_columns_of_too_many_words_are_named_at_once(tmp_path: Path) -> None:
    words = {name: pl.Series([f"{name} {row}" for row in range(300)]) for name in ("Name", "Ticket", "Cabin")}
    error = refused(written(mixed().with_columns(**words), tmp_path), "RM582")
    assert all(f"column {name!r}" in error.what for name in words)
    assert "--ignore Name,Ticket,Cabin" in error.next
