from __future__ import annotations

import json
import shlex
from pathlib import Path

from trainer.engine.state import Epoch
from trainer.run.artifacts import lasted
from trainer.run.summary import next_commands, summary, where_to_go
from trainer.tasks.metrics.summary import row_lines

OPTIONS = Path(__file__).resolve().parents[4] / "rocmatrix/runtime/trainer/options.json"
HISTORY = [
    Epoch(epoch=1, train_loss=1.0, validation_loss=1.0, seconds=0.5, rows_per_second=200.0, best=True),
    Epoch(epoch=2, train_loss=0.5, validation_loss=2.0, seconds=1.5, rows_per_second=66.7, best=False),
]
RECORD = {
    "device": {"device": "cuda:0", "name": "Radeon", "arch": "gfx1100", "reason": "auto: only one"},
    "data": {"name": "x.csv", "rows_used": 1257, "first_date": "2014-01-03", "last_date": "2018-12-31"},
    "feature_set": {"set": "daily"},
    "target": {"classes": 0},
    "baselines": {"mean": "", "persistence": "", "linear": ""},
    "split": {"train": {"rows": 100}, "validation": {"rows": 20}, "test": {"rows": 21}},
    "metrics": {
        "best": {"epoch": 1},
        "validation": {"r2_vs_mean": 0.512, "r2_vs_persistence": None, "r2_vs_linear": -0.1},
        "test": {"r2_vs_mean": 0.4, "r2_vs_persistence": 0.2, "r2_vs_linear": 0.0},
    },
}


def test_summary_has_four_lines() -> None:
    assert summary(RECORD, row_lines(RECORD, lasted(HISTORY))).splitlines() == [
        "device  cuda:0, Radeon (gfx1100); auto: only one",
        "data    x.csv, 1,257 bars 2014-01-03 to 2018-12-31; rows: 100 train / 20 validation / 21 test",
        "best    epoch 1 of 2, in 2.0 s at 100 rows/s",
        "R²      validation / test: 0.51 / 0.40 against the training mean, none / 0.20 against persistence, "
        "-0.10 / 0.00 against a linear fit",
    ]


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
