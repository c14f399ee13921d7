"""The learning task follows from the data and the target; rows go to the disk only where they are mapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.tables import mixed, written
from trainer.config.train import TrainConfig
from trainer.tasks.choose import disk_of, task_of
from trainer.tasks.row_task import BarTask, TableTask


@pytest.mark.parametrize(("feed", "mapped"), [("mapped", True), ("host", False), ("auto", False)])
def test_rows_go_to_the_output_folder_only_where_they_are_mapped(tmp_path: Path, feed: str, mapped: bool) -> None:
    assert disk_of(TrainConfig.of(feed=feed, output=tmp_path)) == (tmp_path if mapped else None)


def test_bars_and_a_table_are_tasks_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bars = task_of(TrainConfig.of(data_fraction=0.3), shown=False)
    assert isinstance(bars, BarTask) and bars.kind == "bars"
    table = task_of(TrainConfig.of(data=written(mixed(), tmp_path), target="y"))
    assert isinstance(table, TableTask) and table.kind == "table"


def test_text_is_a_language_task(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("In the beginning was the word.\n" * 50)
    made = task_of(TrainConfig.of(task="lm", data=tmp_path / "a.txt", sequence=16, output=tmp_path))
    assert made.kind == "language"


def test_assumptions_are_reported_where_they_are_shown_alone(capsys: pytest.CaptureFixture[str]) -> None:
    task_of(TrainConfig.of(data_fraction=0.3))
    quiet = capsys.readouterr().err
    task_of(TrainConfig.of(data_fraction=0.3), shown=True)
    assert len(capsys.readouterr().err) > len(quiet)
