"""Settings of the loop from the command line to the run's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from tests.fixtures.tokens import ToyTask
from trainer.cli import main
from trainer.config.recipe import as_recipe
from trainer.config.sections.optimizer import LoopConfig, OptimizerConfig
from trainer.config.setting import settings_of
from trainer.config.train import TrainConfig, notices
from trainer.run import train as job
from trainer.run.phases import prepare as phase
from trainer.tasks.task import LearningTask

CHOSEN: dict[str, Any] = {"clip_norm": 1.0, "best_on": "host"}
SHORT = ("--batch-size", "64", "--step", "eager")  # 14 steps an epoch


def train(output: Path, *flags: str) -> int:
    return main(["train", "--output", str(output), "--run", "one", *SHORT, *flags])


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def record(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "one" / "metadata.json").read_text())
    return found


def history(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "one" / "metrics.jsonl").read_text().splitlines()]


def test_settings_that_are_not_used_are_not_recorded() -> None:
    names = {name for name, each in settings_of(LoopConfig, OptimizerConfig).items() if each.sparse}
    assert not names & TrainConfig.of().as_dict().keys()
    assert not any(name in as_recipe(TrainConfig.of()) for name in names)
    used = TrainConfig.of(**CHOSEN)
    assert {name: value for name, value in used.as_dict().items() if name in names} == {
        "clip_norm": 1.0,
        "best_on": "host",
    }
    assert "clip_norm: 1.0" in as_recipe(used)


def test_max_steps_end_a_run_and_decide_its_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "--max-steps", "20") == 0
    steps = record(tmp_path)["split"]["train"]["rows"] // 64 + 1
    assert [(line["epoch"], line["step"]) for line in history(tmp_path)] == [(1, steps), (2, 20)]
    assert "step 20" in capsys.readouterr().err
    assert record(tmp_path)["config"]["max_steps"] == 20


def test_epochs_next_to_max_steps_are_reported_to_have_no_effect() -> None:
    assert notices(TrainConfig.of(max_steps=5)) == []
    (notice,) = notices(TrainConfig.of(max_steps=5, epochs=7))
    assert "--epochs 7 has no effect" in notice


def test_loop_settings_work_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--max-steps", "400", "--eval-every", "6", "--patience", "2", "--clip-norm", "0.5", "--warmup-steps", "3"]
    assert train(tmp_path, *flags, "--schedule", "wsd", "--best-on", "host", "--learning-rate", "0.3") == 0
    reported = events(capsys)
    (early,) = [event for event in reported if event["event"] == "early_stop"]
    found = history(tmp_path)
    assert found[-1]["step"] == early["step"] < 400
    assert all(line["step"] % 6 == 0 for line in found)
    losses = [line["validation_loss"] for line in found]
    assert len(losses) - 1 - losses.index(min(losses)) == 2
    assert record(tmp_path)["metrics"]["best"]["step"] == found[losses.index(min(losses))]["step"]


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--warmup-steps", "3", "--warmup-ratio", "0.1"], "RM526"),
        (["--schedule", "inverse-sqrt"], "RM526"),
        (["--max-steps", "5", "--warmup-steps", "5"], "RM526"),
        (["--max-steps", "0"], "RM500"),
        (["--clip-norm", "0"], "RM500"),
        (["--clip-norm", "nan"], "RM500"),
        (["--warmup-ratio", "1"], "RM500"),
        (["--best-on", "disk"], "RM500"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], code: str
) -> None:
    assert train(tmp_path, *flags) == 2
    assert events(capsys)[-1]["code"] == code
    assert not (tmp_path / "one").exists()


class StopAfter:
    """Asks the run to end after a step, as SIGTERM does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
        assemble = job.assemble

        def stopping(*arguments: Any) -> Any:
            training = assemble(*arguments)
            training.optimizer.register_step_post_hook(lambda *_: self.count(training))
            return training

        self.left = step
        monkeypatch.setattr(job, "assemble", stopping)

    def count(self, training: Any) -> None:
        self.left -= 1
        training.stop.requested = training.stop.requested or self.left <= 0


def interrupted(tmp_path: Path, step: int, *flags: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        StopAfter(patch, step)
        assert train(tmp_path, *flags) == 75


@pytest.mark.parametrize(
    ("begun", "given"),
    [
        ((), ("--clip-norm", "1")),
        (("--clip-norm", "1"), ("--clip-norm", "2")),
        (("--eval-every", "5"), ("--eval-every", "6")),
        ((), ("--warmup-steps", "2")),
        (("--schedule", "linear", "--max-steps", "30"), ("--max-steps", "40")),
        (("--warmup-ratio", "0.2", "--max-steps", "30"), ("--max-steps", "40")),
        (("--max-steps", "30"), ("--max-steps", "9")),
    ],
)
def test_resume_under_settings_that_decide_other_weights_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], begun: tuple[str, ...], given: tuple[str, ...]
) -> None:
    interrupted(tmp_path, 10, "--epochs", "3", *begun)
    capsys.readouterr()
    assert main(["train", "--output", str(tmp_path), "--resume", "one", *given]) == 2
    assert events(capsys)[-1]["code"] == "RM551"


def test_resumed_run_has_the_settings_it_was_started_with_and_may_be_longer(tmp_path: Path) -> None:
    flags = ["--eval-every", "8", "--clip-norm", "0.1", "--warmup-steps", "4"]
    assert train(tmp_path / "whole", *flags, "--max-steps", "40") == 0
    interrupted(tmp_path / "cut", 11, *flags, "--max-steps", "25")
    assert main(["train", "--output", str(tmp_path / "cut"), "--resume", "one", "--max-steps", "40"]) == 0
    assert history(tmp_path / "cut") == history(tmp_path / "whole")
    weights = [(tmp_path / name / "one" / "model.safetensors").read_bytes() for name in ("cut", "whole")]
    assert weights[0] == weights[1]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> LearningTask:
    task: LearningTask = ToyTask()
    monkeypatch.setattr(phase, "task_of", lambda config, shown: task)
    return task


@pytest.mark.usefixtures("toy")
def test_task_that_is_not_rows_trains_resumes_and_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--batch-size", "8", "--epochs", "3", "--step", "auto", "--compile", "auto", "--learning-rate", "0.01"]
    assert train(tmp_path / "whole", *flags) == 0
    reported = events(capsys)
    assert next(event for event in reported if event["event"] == "step")["name"] == "eager"
    assert reported[-1]["event"] == "done" and reported[-1]["next"] == []  # no command of another kind's is named
    found = record(tmp_path / "whole")
    assert (found["task"], found["toy"]) == ("toy", {"vocabulary": 11})
    assert not {"scaler", "features", "split", "target"} & found.keys()
    assert found["metrics"]["best"]["validation_loss"] < 2.4
    weights = safetensors.torch.load_file(tmp_path / "whole" / "one" / "model.safetensors")
    interrupted(tmp_path / "cut", 9, *flags)
    assert main(["train", "--output", str(tmp_path / "cut"), "--resume", "one"]) == 0
    again = safetensors.torch.load_file(tmp_path / "cut" / "one" / "model.safetensors")
    assert weights.keys() == again.keys()
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert history(tmp_path / "cut") == history(tmp_path / "whole")


@pytest.mark.usefixtures("toy")
def test_predict_refuses_the_model_of_another_kind_of_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "--max-steps", "2") == 0
    capsys.readouterr()
    assert main(["predict", "--model", str(tmp_path / "one"), "--data", str(tmp_path / "x.csv")]) == 2
    error = events(capsys)[-1]
    assert error["code"] == "RM546"
    assert "toy" in error["why"]
