from __future__ import annotations

from pathlib import Path

from tests.fixtures.summaries import HISTORY, RECORD
from trainer.run.artifacts import lasted
from trainer.run.summary import summary, where_to_go
from trainer.tasks.metrics.summary import row_lines

COMMANDS = ["./invokew predict --model {run} --data NEW.csv --output forecasts.csv", "./invokew report {run}"]


def test_run_started_by_hand_ends_with_its_folder_and_the_next_commands() -> None:
    assert where_to_go(COMMANDS, Path("TRAINING/my one")).splitlines() == [
        "folder  TRAINING/my one",
        "next    ./invokew predict --model 'TRAINING/my one' --data NEW.csv --output forecasts.csv",
        "next    ./invokew report 'TRAINING/my one'",
    ]


def test_exact_baseline_is_reported_and_a_missing_figure_is_null() -> None:
    metrics = {part: {"r2_vs_mean": None, "r2_vs_linear": None} for part in ("validation", "test")}
    record = RECORD | {"metrics": {"best": {"epoch": 1}} | metrics, "baselines": {"mean": "", "linear": ""}}
    record |= {"absent": {"metrics.test.r2_vs_mean": "the figure is no finite number"}}
    line = summary(record, row_lines(record, lasted(HISTORY))).splitlines()[3]
    assert line == "R²      validation / test: none / none against the training mean, a linear fit is exact"
