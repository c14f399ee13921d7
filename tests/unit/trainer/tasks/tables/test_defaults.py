"""What is chosen for a table where nothing is given, and that what is given stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.tables import mixed, written
from trainer.cli import main
from trainer.config.sections.optimizer import LoopConfig
from trainer.tasks.tables.defaults import table_defaults


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (210, {"learning_rate": 3e-3, "epochs": 300, "patience": 30}),
        (3200, {"learning_rate": 1e-3, "epochs": 200, "patience": 20}),
        (1_000_000, {"learning_rate": 1e-3, "epochs": 30, "patience": 10}),
    ],
)
def test_defaults_follow_the_rows(rows: int, expected: dict[str, Any]) -> None:
    assert table_defaults(LoopConfig(), rows, ()) == expected


@pytest.mark.parametrize("given", ["epochs", "max_steps", "eval_every"])
def test_run_of_given_length_has_no_patience_of_itself(given: str) -> None:
    assert table_defaults(LoopConfig(), 210, {given}) == {"learning_rate": 3e-3}


def test_given_rate_stays() -> None:
    assert table_defaults(LoopConfig(), 210, {"learning_rate"}).keys() == {"epochs", "patience"}


def trained(tmp_path: Path, *flags: str) -> dict[str, Any]:
    path = written(mixed(), tmp_path)
    argv = ["train", f"--data={path}", "--target=y", f"--output={tmp_path}", "--run=one", "--device=cpu", *flags]
    assert main(argv) == 0
    record: dict[str, Any] = json.loads((tmp_path / "one" / "metadata.json").read_text())
    return record


def test_run_without_settings_reports_and_records_what_was_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = trained(tmp_path)
    shown = capsys.readouterr().err
    assert "chosen for 210 training rows: --learning-rate 0.003, --epochs 300, --patience 30" in shown
    assert "'y' is one of 2 classes (no, yes): the target holds words" in shown
    assert "95 % interval of the right test answers" in shown
    assert {name: record["config"][name] for name in ("learning_rate", "epochs", "patience")} == {
        "learning_rate": 3e-3,
        "epochs": 300,
        "patience": 30,
    }
    figures = record["metrics"]["test"]
    assert figures["accuracy_low"] <= figures["accuracy"] <= figures["accuracy_high"]
    assert sum(map(sum, record["metrics"]["confusion"]["test"])) == figures["rows"]


def test_run_with_rate_and_epochs_is_trained_as_it_was_before(tmp_path: Path) -> None:
    record = trained(tmp_path, "--learning-rate=5e-05", "--epochs=3")
    assert (record["config"]["learning_rate"], record["config"]["epochs"]) == (5e-5, 3)
    assert "patience" not in record["config"]
