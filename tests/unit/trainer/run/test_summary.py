from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.fixtures.summaries import HISTORY, RECORD
from trainer.run.artifacts import lasted
from trainer.run.summary import next_commands, summary, where_to_go
from trainer.tasks.metrics.summary import row_lines

OPTIONS = Path(__file__).resolve().parents[4] / "rocmatrix/runtime/trainer/options.json"


def test_run_started_by_hand_ends_with_its_folder_and_the_next_commands() -> None:
    assert where_to_go(RECORD, Path("TRAINING/my one")).splitlines() == [
        "folder  TRAINING/my one",
        "next    ./invokew predict --model 'TRAINING/my one' --data NEW.csv --output forecasts.csv",
        "next    ./invokew report 'TRAINING/my one'",
    ]


def test_next_commands_are_tasks_with_these_options() -> None:
    language = {"task": "language", "model": {"adapter": "none"}, "language": {"method": "pretrain"}}
    tuned = {"task": "language", "model": {"adapter": "lora"}, "language": {"method": "sft"}}
    known = {(each["command"], each["name"]) for each in json.loads(OPTIONS.read_text())}
    for record in (RECORD, language, tuned):
        commands = next_commands(record)
        assert commands
        for command in commands:
            _, task, *words = shlex.split(command)
            named = {(task, word[2:].replace("-", "_")) for word in words if word.startswith("--")}
            assert named <= known, command


def test_exact_baseline_is_reported_and_a_missing_figure_is_null() -> None:
    metrics = {part: {"r2_vs_mean": None, "r2_vs_linear": None} for part in ("validation", "test")}
    record = RECORD | {"metrics": {"best": {"epoch": 1}} | metrics, "baselines": {"mean": "", "linear": ""}}
    record |= {"absent": {"metrics.test.r2_vs_mean": "the figure is no finite number"}}
    line = summary(record, row_lines(record, lasted(HISTORY))).splitlines()[3]
    assert line == "R²      validation / test: none / none against the training mean, a linear fit is exact"
