"""What a run records of its start, and what of it a resume keeps: the planned micro-batch, the choice of ranks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from trainer.cli import main
from trainer.run import train as job
from trainer.run.memory_plan.start_size import StartSize
from trainer.run.phases import assemble, prepare
from trainer.run.repeated_faults.remedy import Treatment
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")

START = StartSize(rows=2, why="STAND-IN", needed_bytes=1, budget_bytes=2)
TINY = ["--task", "lm", "--sequence", "32", "--decoder-layers", "1", "--decoder-width", "32", "--batch-size", "4"]


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether each resume took the size as one set by hand, which undoes what a checkpoint cut."""
    seen: list[bool] = []
    whole = assemble.restore_latest_checkpoint

    def watched(*args: Any, fixed_size: bool) -> None:
        seen.append(fixed_size)
        whole(*args, fixed_size=fixed_size)

    monkeypatch.setattr(assemble, "restore_latest_checkpoint", watched)
    return seen


def train(folder: Path, name: str, *more: str) -> int:
    return main(["train", "--output", str(folder), "--run", name, "--device", "cpu", *more])


def record_of(folder: Path, name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / name / "metadata.json").read_text())
    jsonschema.validate(record, json_schema())
    return record


def killed_before_its_first_checkpoint(folder: Path, name: str, fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop that ends the run, its folder kept as SIGKILL would leave it."""

    def dies(training: Any) -> None:
        shutil.copytree(folder / f".{name}.partial", folder / "kept")
        raise KeyboardInterrupt

    return dies


def stopped_after_a_step(folder: Path, name: str, fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop that is asked to stop before its first step ends, and leaves a checkpoint."""

    def stops(training: Any) -> Any:
        training.stop.requested = True
        return fit(training)

    return stops


ENDS = (killed_before_its_first_checkpoint, stopped_after_a_step)


def begun(folder: Path, name: str, end: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """Begin a run that `end` ends; its folder is left for a resume."""
    with monkeypatch.context() as patched:
        patched.setattr(job, "fit", end(folder, name, job.fit))
        assert train(folder, name, *more) != 0
    if (folder / "kept").exists():
        (folder / "kept").rename(folder / f".{name}.partial")
    assert (folder / f".{name}.partial" / "run.json").is_file()


@pytest.mark.parametrize("end", ENDS)
def test_planned_micro_batch_is_that_of_a_resumed_run(
    end: Callable[..., Any], fixed: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU: the plan, and that there is a card to plan for, are STAND-INS."""
    data = tmp_path / "text.txt"
    data.write_text("In the beginning was the word, and the word was short.\n" * 30)
    words = ["--data", str(data), "--max-steps", "3", *TINY]
    assert train(tmp_path, "given", *words, "--micro-batch", "2") == 0
    planned: list[int] = []
    monkeypatch.setattr(prepare, "plannable", lambda config, _: config.compute.micro_batch is None)
    monkeypatch.setattr(prepare, "start_size", lambda *_, rows, **__: planned.append(rows) or START)
    begun(tmp_path, "auto", end, monkeypatch, *words)
    assert train(tmp_path, "auto", *words, "--resume", "auto") == 0
    assert (planned, record_of(tmp_path, "auto")["micro_batch"]) == ([4], START.facts())
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("given", "auto")]
    assert (models[0] == models[1], fixed) == (True, [False])


def test_micro_batch_of_a_resume_by_hand_replaces_the_planned_one(
    fixed: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU: the plan, and that there is a card to plan for, are STAND-INS."""
    data = tmp_path / "text.txt"
    data.write_text("In the beginning was the word, and the word was short.\n" * 30)
    words = ["--data", str(data), "--max-steps", "3", *TINY]
    monkeypatch.setattr(prepare, "plannable", lambda config, _: config.compute.micro_batch is None)
    monkeypatch.setattr(prepare, "start_size", lambda *_, **__: START)
    begun(tmp_path, "auto", stopped_after_a_step, monkeypatch, *words)
    assert train(tmp_path, "auto", *words, "--resume", "auto", "--micro-batch", "1") == 0
    record = record_of(tmp_path, "auto")
    assert (record.get("micro_batch"), record["config"]["micro_batch"], fixed) == (None, 1, [True])


def choice(ranks: int, reason: str) -> dict[str, Any]:
    return {"ranks": ranks, "reason": reason, "one": None, "all": None, "stand_in": True, "margin": 1.1}


@pytest.mark.parametrize("end", ENDS)
def test_choice_of_ranks_at_the_start_is_kept_with_those_of_resumes(
    end: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"one": {"rows_per_second": 22_871.0}, "all": {"rows_per_second": 1_800.0}}
    first = choice(1, "2 ranks train less") | rates
    kept, other = choice(1, "the run to resume was trained by 1"), choice(1, "two cards are here now")
    quick = ["--epochs", "2", "--hidden-layers", "4", "--baselines", "none"]
    begun(tmp_path, "one", end, monkeypatch, *quick, "--rank-choice", json.dumps(first))
    for again in (kept, kept, other):
        begun(
            tmp_path, "one", stopped_after_a_step, monkeypatch, *quick, "--resume", "one",
            "--rank-choice", json.dumps(again),
        )  # fmt: skip
    assert train(tmp_path, "one", "--resume", "one") == 0
    assert record_of(tmp_path, "one")["rank_choice"] == first | {"resumed": [kept, other]}


def test_treatment_without_remedies_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assemble.report_treatment(Treatment())
    assert capsys.readouterr() == ("", "")
