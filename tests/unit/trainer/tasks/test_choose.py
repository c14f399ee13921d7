"""The learning task follows from the data and the target; rows go to the disk only where they are mapped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.tables import mixed, written
from trainer.config.train import TrainConfig
from trainer.tasks.choose import disk_of, task_of
from trainer.tasks.row_task import BarTask, TableTask

ROOT = Path(__file__).resolve().parents[4]


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


def test_language_model_trains_where_polars_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "polars").mkdir()
    (tmp_path / "polars" / "__init__.py").write_text("raise ModuleNotFoundError('blocked by the test')")
    (tmp_path / "a.txt").write_text("In the beginning was the word.\n" * 50)
    flags = ["--task", "lm", "--data", "a.txt", "--sequence", "16", "--batch-size", "2", "--max-steps", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "train", *flags, "--decoder-layers", "1", "--output", "runs"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]


def test_assumptions_are_reported_where_they_are_shown_alone(capsys: pytest.CaptureFixture[str]) -> None:
    task_of(TrainConfig.of(data_fraction=0.3))
    quiet = capsys.readouterr().err
    task_of(TrainConfig.of(data_fraction=0.3), shown=True)
    assert len(capsys.readouterr().err) > len(quiet)
