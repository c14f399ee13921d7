"""Rows of a table on their way to a task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.table_tasks import task_of
from tests.fixtures.tables import mixed
from trainer.data.tables.encoding import Parsed
from trainer.data.tables.reader import read_cells
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
