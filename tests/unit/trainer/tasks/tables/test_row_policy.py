"""Rows of a table on their way to a task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.fixtures.table_tasks import refused, task_of
from tests.fixtures.tables import mixed, written
from trainer.analysis.table_inputs import recorded_inputs
from trainer.data.tables.encoding import Parsed
from trainer.data.tables.reader import read_cells
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables import prepare as table_task
from trainer.tasks.tables.row_policy import Reading


def test_columns_that_are_parsed_are_not_copied_for_each_further_one(tmp_path: Path) -> None:
    """A table of 5,000 columns took over 150 s; each look at a column copied the list of those before it."""
    table = mixed()
    table.write_csv(path := tmp_path / "t.csv")
    reading = Reading(cells=read_cells(path), held={*table.columns[1:]}, kept=np.ones(len(table), np.bool_))
    kept = reading._parsed
    for name in table.columns:
        reading.parsed(name)
    assert reading._parsed is kept
    assert set(kept) == {*table.columns[1:]}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_mapped_rows_have_one_column_at_a_time_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = mixed()
    path = tmp_path / f"t.{kind}"
    table.write_parquet(path) if kind == "parquet" else table.write_csv(path)
    readings: list[Reading] = []
    most: list[int] = []

    class Watched(Reading):
        def parsed(self, name: str) -> Parsed:
            found = super().parsed(name)
            most.append(len(self._parsed))
            readings.append(self)
            return found

    monkeypatch.setattr(table_task, "Reading", Watched)
    found = task_of(path, feed="mapped", output=tmp_path / "runs")
    assert max(most) == 2  # the target, and the column that is looked at
    assert readings[-1].held == {"y"}
    for part in (found.split.train, found.split.validation, found.split.test):
        base = part.features
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap)
    most.clear()
    expected = task_of(path)
    assert max(most) == len(table.columns)
    assert np.array_equal(expected.split.test.features, found.split.test.features)


@pytest.mark.parametrize(
    ("different", "cell", "name"), [(11, "**", "x"), (1, "**", "z"), (1, "inf", "x"), (1, "-1e39", "x")]
)
def test_words_among_numbers_are_refused_where_they_are_no_marks(
    tmp_path: Path, different: int, cell: str, name: str
) -> None:
    table = mixed(gaps=False).drop("y")
    cells = [f"{cell}{row}" if different > 1 else cell for row in range(different)]
    words = [cells[row] if row < different else str(value) for row, value in enumerate(table[name])]
    path = written(table.with_columns(pl.Series(name, words)), tmp_path)
    assert refused(path, "RM580", target="z").what.startswith(f"{cells[0]!r} in column {name!r} ")


def test_marks_among_numbers_are_named_and_are_missing_in_new_rows_too(tmp_path: Path, capsys) -> None:
    table = mixed(gaps=False).drop("y")
    marks = ["(OR)", "**", "**", *(f"m{number}" for number in range(8))]  # ten different ones
    words = [marks[row] if row < len(marks) else str(value) for row, value in enumerate(table["x"])]
    path = written(table.with_columns(pl.Series("x", words)), tmp_path)
    task = task_of(path, target="z")
    made, place = task.made, [feature["name"] for feature in task.features].index("x")
    assert "numbers of 'x' count as missing: '**' (2), " in capsys.readouterr().err
    assert made["missing"]["cells"]["x"] == len(marks) and {"**", "(or)", "m7"} <= set(made["missing"]["words"])
    _, inputs = recorded_inputs(made, path)
    filled = next(column["fill"] for column in made["columns"] if column["name"] == "x")
    assert np.allclose(inputs[: len(marks), place], filled) and inputs[len(marks) :, place].std() > 0
    new = path.with_name("new.csv")
    new.write_text(path.read_text().replace("(OR)", "never seen"))
    with pytest.raises(TrainerError, match="never seen"):
        recorded_inputs(made, new)
