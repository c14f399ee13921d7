"""Columns that are left out by themselves: identifiers, names, free text, lists."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.table_tasks import columns, refused, task_of
from tests.fixtures.tables import hours, mixed, written
from trainer.tasks.tables import left_out

NAMES = {name: pl.Series([f"{name} {row}" for row in range(300)]) for name in ("Name", "Ticket", "Cabin")}


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


def test_columns_of_names_are_left_out_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = task_of(written(mixed().with_columns(**NAMES), tmp_path))
    assert task.made["ignored"] == [*NAMES] and not {*NAMES} & {*columns(task)}
    shown = "Name (300 words), Ticket (300 words), Cabin (300 words) (--categories keeps them)"
    assert f"table   left out, too many different words for the rows: {shown}\n" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "left"), [(20, False), (150, False), (151, True)])
def test_column_of_words_stays_up_to_half_as_many_as_rows(tmp_path: Path, words: int, left: bool) -> None:
    cities = pl.Series([f"city {row % words}" for row in range(300)])
    assert ("city" not in columns(task_of(written(mixed().with_columns(city=cities), tmp_path)))) == left


def test_column_of_names_is_kept_where_it_is_named(tmp_path: Path) -> None:
    path = written(mixed().with_columns(**NAMES), tmp_path)
    task = task_of(path, categories=("Ticket",))
    assert task.made["ignored"] == ["Name", "Cabin"] and "Ticket" in columns(task)


def test_rows_without_a_name_are_no_rows_to_drop(tmp_path: Path) -> None:
    some = pl.Series([f"C{row}" if row % 3 else "" for row in range(300)])
    task = task_of(written(mixed().with_columns(Cabin=some), tmp_path), missing="drop")
    assert "Cabin" not in json.dumps(task.made["dropped_rows"])


def test_table_of_names_alone_is_refused(tmp_path: Path) -> None:
    error = refused(written(mixed().select("y").with_columns(**NAMES), tmp_path), "RM580")
    assert "no column but names" in error.what and "--categories" in error.next


def test_names_that_are_times_or_have_units_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    weights = pl.Series([f"{row} {'kg' if row % 2 else 'g'}" for row in range(99)])
    left_out.report_unique({"my when": pl.Series(hours(99)), "weight": weights, "n": pl.Series(["a", "b"])})
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [
        "table   column 'my when' reads as times; --time-column 'my when' splits the rows by it",
        "table   column 'weight' has numbers with 'g' or 'kg' behind: write the numbers alone to use them",
    ]
    left_out.report_unique({"n": pl.Series([str(row) for row in range(10_001)])})
    left_out.report_unique({})
    assert "categories" not in capsys.readouterr().err


def test_columns_of_lists_are_left_out_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = mixed().with_columns(tags=pl.Series([[1, 2]] * 300), raw=pl.Series([b"a"] * 300))
    path = tmp_path / "t.parquet"
    table.write_parquet(path)
    assert task_of(path).made["ignored"] == ["tags", "raw"]
    assert "left out, neither numbers nor words: tags (List(Int64)), raw (Binary);" in capsys.readouterr().err
    refused(path, "RM580", target="tags")
