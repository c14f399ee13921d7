"""`--resume` as a user meets it, each run in this process but where a signal is needed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.left_out import long
from trainer.cli import main
from trainer.config.train import TrainConfig
from trainer.run import train as job
from trainer.run.resume_settings import rounding_changes, with_settings_of
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import SAMPLE

pytestmark = pytest.mark.usefixtures("torch_as_before")

ROOT = Path(job.__file__).parents[2]
QUICK = ("--epochs", "6", "--device", "cpu", "--hidden-layers", "8")
STOPPING = """
import os, signal, sys
from trainer.engine import loop
from trainer.cli import main

def close_epoch(training, whole=loop.close_epoch):
    closed = whole(training)
    if closed.epoch == {epochs}:
        os.kill(os.getpid(), signal.SIGTERM)
    return closed

loop.close_epoch = close_epoch
sys.exit(main(sys.argv[1:]))
"""
SAME = ("model.pt", "model.safetensors", "metrics.jsonl", "batches.jsonl")


def train(output: Path, *flags: str) -> int:
    return main(["train", "--output", str(output), *flags])


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def content(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in SAME}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("undisturbed")
    assert train(output, "--run", "one", *QUICK) == 0
    return output / "one"


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with run `one`, stopped by SIGTERM in the middle."""
    output = tmp_path_factory.mktemp("stopped")
    command = [sys.executable, "-m", "trainer", "train", "--output", str(output), "--run", "one", *QUICK]
    command += ["--checkpoint-every", "20"]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    while json.loads(run.stdout.readline())["event"] != "epoch":
        pass
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 75, err
    assert json.loads(out.splitlines()[-1])["code"] == "RM554"
    return output


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped_once, tmp_path / "TRAINING"))


@pytest.mark.parametrize("flags", [("--resume", "auto"), ("--resume", "one"), ("--resume", "auto", "--run", "one")])
def test_stopped_run_resumes_under_its_own_settings(stopped: Path, undisturbed: Path, flags: tuple[str, ...]) -> None:
    assert train(stopped, *flags) == 0
    assert [path.name for path in stopped.iterdir()] == ["one"]
    assert content(stopped / "one") == content(undisturbed)
    assert {path.name for path in (stopped / "one").iterdir()} == {
        *SAME,
        "metadata.json",
        "recipe.yaml",
        "telemetry.jsonl",
    }
    config = json.loads((stopped / "one" / "metadata.json").read_text())["config"]
    assert (config["epochs"], config["hidden_layers"]) == (6, [8])


def test_changed_setting_is_reported(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(stopped, "--resume", "auto") == 0
    resumed = next(event for event in events(capsys) if event["event"] == "resumed")
    assert resumed["run"] == "one"
    assert resumed["step"] > 0
    assert not resumed["from_start"]


def test_run_without_a_good_checkpoint_begins_anew_and_reports_it(
    stopped: Path, undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in stopped.rglob("manifest.json"):
        path.write_bytes(b"")
    assert train(stopped, "--resume", "auto", *QUICK) == 0
    captured = capsys.readouterr()
    assert "RM552 checkpoint" in captured.err
    assert "has no valid checkpoint and starts from the beginning" in captured.err
    assert content(stopped / "one") == content(undisturbed)


def test_settings_are_known_even_without_their_file(stopped: Path, undisturbed: Path) -> None:
    (stopped / ".one.partial" / "run.json").write_bytes(b"{")
    assert train(stopped, "--resume", "one") == 0
    assert content(stopped / "one") == content(undisturbed)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--seed", "5"), "--seed 0"),
        (("--hidden-layers", "9"), "--hidden-layers 8"),
        (("--batch-size", "8", "--learning-rate", "1"), "--batch-size 32, --learning-rate 5e-05"),
    ],
)
def test_setting_that_decides_the_weights_may_not_change(
    stopped: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], says: str
) -> None:
    assert train(stopped, "--resume", "one", *flags) == 2
    error = events(capsys)[-1]
    assert error["code"] == "RM551"
    assert says in error["what"]
    assert (stopped / ".one.partial" / "checkpoints").exists()


def test_other_data_are_refused(stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.csv"
    other.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:-1]))
    assert train(stopped, "--resume", "one", "--data", str(other)) == 2
    assert events(capsys)[-1]["code"] == "RM551"
    same = tmp_path / "same.csv"
    shutil.copy(SAMPLE, same)
    assert train(stopped, "--resume", "one", "--data", str(same)) == 0


def test_more_epochs_are_the_same_run_longer(stopped: Path, tmp_path: Path) -> None:
    assert train(stopped, "--resume", "one", "--epochs", "8") == 0
    assert train(tmp_path / "whole", "--run", "one", *QUICK, "--epochs", "8") == 0
    assert content(stopped / "one") == content(tmp_path / "whole" / "one")


def test_fewer_epochs_than_were_trained_are_refused(
    stopped: Path, undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained_for(stopped, 3)
    assert train(stopped, "--resume", "one", "--epochs", "1") == 2
    error = events(capsys)[-1]
    assert (error["code"], error["what"]) == ("RM551", "run one has trained 3 epochs, more than --epochs 1")
    assert train(stopped, "--resume", "one") == 0  # the refusal left the run, and its settings, as they were
    assert content(stopped / "one") == content(undisturbed)


@long
def test_longer_run_that_is_stopped_again_stays_longer(stopped: Path, undisturbed: Path, tmp_path: Path) -> None:
    trained_for(stopped, 3, "--epochs", "8")
    trained_for(stopped, 7)
    assert train(stopped, "--resume", "auto") == 0
    assert json.loads((stopped / "one" / "metadata.json").read_text())["config"]["epochs"] == 8
    assert "epochs: 8" in (stopped / "one" / "recipe.yaml").read_text()
    lines = [(run / "metrics.jsonl").read_text().splitlines() for run in (stopped / "one", undisturbed)]
    assert (len(lines[0]), lines[0][:6]) == (8, lines[1])


def trained_for(output: Path, epochs: int, *flags: str) -> None:
    """Go on with the stopped run, and stop it by SIGTERM when `epochs` of its epochs are trained."""
    command = [sys.executable, "-c", STOPPING.format(epochs=epochs), "train", "--output", str(output)]
    run = subprocess.run([*command, "--resume", "one", *flags], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 75, run.stderr


def test_run_that_is_not_there_names_those_that_are(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(stopped, "--resume", "on") == 2
    error = events(capsys)[-1]
    assert (error["code"], error["why"]) == ("RM550", "did you mean one?")


def test_auto_starts_anew_where_nothing_is_unfinished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "--resume", "auto", "--run", "one", *QUICK) == 0
    captured = capsys.readouterr()
    events_ = [json.loads(line) for line in captured.out.splitlines()]
    assert events_[0] == {"event": "nothing_to_resume", "folder": str(tmp_path), "run": "one"}
    assert "resumed" not in {event["event"] for event in events_}
    assert f"resume  nothing to resume in {tmp_path}: begins a new run" in captured.err


def test_complete_run_is_finalized_and_left_alone(undisturbed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a kill between the rename and the last removal leaves; a scheduler starts the same command again."""
    (undisturbed / "checkpoints").mkdir()
    (undisturbed / "run.json").touch()
    before = content(undisturbed)
    for flags in (("--resume", "auto", "--run", "one"), ("--resume", "one")):
        assert train(undisturbed.parent, *flags) == 0
        assert [event["event"] for event in events(capsys)] == ["complete"]
    assert content(undisturbed) == before
    assert {path.name for path in undisturbed.iterdir()} == {*SAME, "metadata.json", "recipe.yaml", "telemetry.jsonl"}


def test_run_in_progress_is_not_touched(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handle = os.open(stopped / ".one.partial", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        assert train(stopped, "--resume", "one") == 2
        assert events(capsys)[-1]["code"] == "RM555"
        assert (stopped / ".one.partial" / "checkpoints").exists()
        assert train(stopped, "--resume", "auto") == 2
        (error,) = events(capsys)
        assert (error["code"], error["what"]) == ("RM555", "another process works on one")
        assert [path.name for path in stopped.iterdir()] == [".one.partial"]  # no other model instead
        assert train(stopped, "--resume", "auto", "--run", "two", *QUICK) == 0
    finally:
        os.close(handle)


def test_auto_skips_a_run_in_progress(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(stopped / ".one.partial", stopped / ".live.partial")
    handle = os.open(stopped / ".live.partial", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        assert train(stopped, "--resume", "auto") == 0
        assert events(capsys)[-1]["run"] == "one"
    finally:
        os.close(handle)


def test_unfinished_run_is_not_started_over(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(stopped, "--run", "one", *QUICK) == 2
    error = events(capsys)[-1]
    assert error["code"] == "RM540"
    assert "--resume one" in error["next"]


def test_setting_not_given_is_that_of_the_unfinished_run() -> None:
    stored = {"config": TrainConfig.of(epochs=7, seed=3, threads=2).as_dict()}
    config = with_settings_of(TrainConfig.of(epochs=9, output=Path("here")), "one", stored)
    assert (config.loop.epochs, config.loop.seed, config.compute.threads, config.run.run) == (9, 3, 2, "one")
    assert config.run.output == Path("here")
    with pytest.raises(TrainerError, match="RM551"):
        with_settings_of(TrainConfig.of(seed=4), "one", stored)


def test_setting_that_rounds_otherwise_is_named() -> None:
    stored = {"config": TrainConfig.of(threads=2).as_dict(), "world_size": 1}
    assert rounding_changes(TrainConfig.of(threads=2), 1, stored) == []
    assert rounding_changes(TrainConfig.of(threads=4), 2, stored) == ["threads 2 is now 4", "world_size 1 is now 2"]


def test_cosine_ends_with_the_epochs_it_began_with() -> None:
    began = {"config": TrainConfig.of(schedule="cosine", epochs=10).as_dict()}
    with pytest.raises(TrainerError, match="--epochs 10"):
        with_settings_of(TrainConfig.of(epochs=20), "one", began)
    assert with_settings_of(TrainConfig.of(), "one", began).loop.epochs == 10
    constant = {"config": TrainConfig.of(epochs=10).as_dict()}
    assert with_settings_of(TrainConfig.of(epochs=20), "one", constant).loop.epochs == 20
