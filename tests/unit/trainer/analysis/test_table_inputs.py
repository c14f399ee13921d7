"""New tables by the metadata of a run: what is missing is what the run took for missing; all SYNTHETIC."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np

from tests.fixtures.table_tasks import columns, task_of
from trainer.analysis.table_inputs import recorded_inputs

STRANDS = "+-."


def table(path: Path, strands: str, rows: int = 120) -> Path:
    lines = [f"{row},{strands[row % len(strands)]},{'+-'[row * 7 % 3 > 1]}" for row in range(rows)]
    path.write_text("\n".join(["x,strand,y", *lines]) + "\n")
    return path


def test_minus_next_to_a_plus_is_a_category_and_a_class(tmp_path: Path) -> None:
    task = task_of(table(tmp_path / "table.csv", STRANDS))
    assert columns(task)["strand"]["categories"] == ["+", "-"]
    assert (task.labels, task.made["dropped_rows"]) == (("+", "-"), {})


def test_minus_stays_a_category_in_new_rows_without_a_plus(tmp_path: Path) -> None:
    task = task_of(table(tmp_path / "table.csv", STRANDS))
    _, inputs = recorded_inputs(task.made, table(tmp_path / "new.csv", "-", rows=4))
    assert inputs[:, 1].tolist() == [2.0] * 4


def test_words_that_an_earlier_run_took_for_categories_are_categories_of_new_rows(tmp_path: Path) -> None:
    made = copy.deepcopy(task_of(table(tmp_path / "table.csv", STRANDS)).made)
    made["missing"]["words"] = ["", "na"]
    made["columns"][1]["categories"] = ["+", "-", "."]
    _, inputs = recorded_inputs(made, table(tmp_path / "new.csv", STRANDS, rows=3))
    assert np.array_equal(inputs[:, 1], [1.0, 2.0, 3.0])
