"""Inputs of a table: identifiers, times and words among its columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.fixtures.table_tasks import columns, refused, task_of
from tests.fixtures.tables import hours, mixed, written
from trainer.data.loading import chunks
from trainer.data.split import FURTHEST, Scaler
from trainer.data.tables.reader import read_cells
from trainer.data.tables.split import Parts
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables.inputs import Matrix, datasets, require_near, side_by_side


def test_column_that_reads_as_times_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = [hours(10)[row % 10] for row in range(300)]
    task_of(written(mixed().with_columns(pl.Series("when", few)), tmp_path))
    assert "column 'when' reads as times, and rows are split without regard to it; --time-column when" in (
        capsys.readouterr().err
    )
    task_of(written(mixed(), tmp_path))
    assert "times" not in capsys.readouterr().err


def matrix(order: list[int], values: list[list[float]]) -> Matrix:
    return Matrix(columns=[], missing={}, order=np.array(order), values=np.array(values))


def test_column_without_a_value_in_training_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = {name: pl.Series([""] * 299 + ["5"]) for name in ("a", "b")}
    path = written(mixed().with_columns(pl.Series("date", hours(300)), **late), tmp_path)
    task = task_of(path)
    assert not {"a", "b"} & {*columns(task)} and task.made["ignored"] == ["a", "b"]
    assert "left out, without any value in the training part: a, b\n" in capsys.readouterr().err
    refused(written(mixed().select("y", a=late["a"], date=pl.Series(hours(300))), tmp_path), "RM583")


@pytest.mark.parametrize("mapped", [False, True])
def test_columns_side_by_side_are_the_same_in_memory_and_mapped(
    tmp_path: Path, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PIECE", 7)
    one, two = np.arange(100.0), np.arange(100.0) * -1
    made = side_by_side([one, two], tmp_path if mapped else None)
    assert made.shape == (100, 2)
    assert np.array_equal(made[:, 0], one) and np.array_equal(made[:, 1], two)


def test_parts_take_their_rows_in_the_order_of_the_matrix() -> None:
    parts = Parts(train=np.array([4, 0]), validation=np.array([2]), test=np.array([3, 1]), how={})
    made = matrix([4, 0, 2, 3, 1], [[40.0], [0.0], [20.0], [30.0], [10.0]])
    found = datasets(made, parts, np.arange(100, 105), np.arange(5.0) + 0.5)
    assert {name: each.features[:, 0].tolist() for name, each in found.items()} == {
        "train": [40.0, 0.0], "validation": [20.0], "test": [30.0, 10.0],
    }  # fmt: skip
    assert found["test"].target.tolist() == [3.5, 1.5]
    assert found["train"].date.tolist() == [104, 100]
    assert np.isnan(found["validation"].persistence).all()


@pytest.mark.parametrize(("value", "refused"), [(2 * FURTHEST, False), (-2 * FURTHEST, False), (2.02 * FURTHEST, True)])
def test_value_too_far_from_training_is_refused_with_its_first_line(table: Path, value: float, refused: bool) -> None:
    cells = read_cells(table)
    scaler = Scaler(mean=np.array([0.0, 0.0]), std=np.array([1.0, 2.0]))
    made = matrix([7, 3, 5], [[0.0, value], [0.0, value], [0.0, 0.0]])
    if not refused:
        require_near(made, scaler, ["a", "b"], cells)
        return
    with pytest.raises(TrainerError, match="RM580") as caught:
        require_near(made, scaler, ["a", "b"], cells)
    assert caught.value.where == cells.place(3)
    assert "column 'b'" in str(caught.value.what)


def test_first_column_that_has_a_far_value_is_named(table: Path) -> None:
    cells = read_cells(table)
    made = matrix([0, 1], [[0.0, 1e30], [1e30, 0.0]])
    with pytest.raises(TrainerError, match="column 'a'"):
        require_near(made, Scaler(mean=np.zeros(2), std=np.ones(2)), ["a", "b"], cells)
