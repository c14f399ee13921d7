"""Whole runs with users' callbacks: the documented example, what is recorded, resume, ranks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.left_out import long
from trainer.cli import main
from trainer.run import train as job
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")

ROOT = Path(job.__file__).parents[2]
HEAD = "from trainer.engine.callbacks import Callback\n"


def train(output: Path, *flags: str) -> int:
    return main(["train", "--output", str(output), "--device", "cpu", *flags])


def events(out: str) -> dict[str, dict[str, Any]]:
    return {event["event"]: event for event in map(json.loads, out.splitlines())}


def documented() -> str:
    """The example of docs/training.md."""
    section = (ROOT / "docs" / "training.md").read_text().split("## Your own callbacks")[1]
    return section.split("```python\n")[1].split("```")[0]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without callbacks."""
    output = tmp_path_factory.mktemp("plain")
    assert train(output, "--run", "r", "--epochs", "3") == 0
    return output / "r"


def test_documented_example_runs_and_leaves_the_results_as_they_are(
    tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "norm.py"
    code.write_text(documented())
    assert len(code.read_text().splitlines()) <= 10
    assert train(tmp_path, "--run", "r", "--epochs", "3", "--callback", f"{code}:GradientNorm") == 0
    out, err = capsys.readouterr()
    assert len(re.findall(r"step \d+: validation [\d.]+, gradient norm [\d.]+", err)) == 3
    assert events(out)["step"]["reason"].count("GradientNorm.on_gradients is called at each step") == 1
    for name in ("model.safetensors", "metrics.jsonl", "batches.jsonl"):
        assert (tmp_path / "r" / name).read_bytes() == (plain / name).read_bytes()
    record = json.loads((tmp_path / "r" / "metadata.json").read_text())
    jsonschema.validate(record, json_schema())
    assert [each["name"] for each in record["callbacks"]] == [f"{code}:GradientNorm"]
    assert "callbacks" not in json.loads((plain / "metadata.json").read_text())
    assert "callback" not in json.loads((plain / "metadata.json").read_text())["config"]


def test_run_that_a_callback_ends_is_complete_and_reports_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "ends.py"
    code.write_text(HEAD + "class Ends(Callback):\n    def on_epoch_end(self, run):\n        run.should_stop = True\n")
    assert train(tmp_path, "--run", "r", "--callback", f"{code}:Ends") == 0
    found = events(capsys.readouterr().out)
    assert found["callback_stop"]["epoch"] == found["epoch"]["epoch"] == 1
    assert (tmp_path / "r" / "model.safetensors").exists()


def test_failed_callback_can_be_mended_and_the_run_resumed(
    tmp_path: Path, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "mine.py"
    fails = "class Mine(Callback):\n    def on_step_end(self, run, taken):\n        1 / (run.state.step - 50)\n"
    code.write_text(HEAD + fails)
    flags = ("--run", "r", "--epochs", "3", "--checkpoint-every", "20", "--callback", f"{code}:Mine")
    assert train(tmp_path, *flags) not in (0, 75)
    out, err = capsys.readouterr()
    assert "RM733" in err
    assert "Mine, on_step_end: ZeroDivisionError" in err
    assert f"{code}:4" in err
    assert "Traceback" not in err
    code.write_text(HEAD + fails.replace("50", "0.5"))
    assert train(tmp_path, *flags[:4], "--resume", "auto") == 0
    out, err = capsys.readouterr()
    assert events(out)["resumed"]["step"] == 40
    assert events(out)["callbacks_changed"]["changes"] == [f"{code}:Mine has changed"]
    assert (tmp_path / "r" / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()


def test_missing_callback_ends_a_resume_unless_callback_none_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "mine.py"
    code.write_text(HEAD + "class Mine(Callback):\n    def on_epoch_end(self, run):\n        raise KeyboardInterrupt\n")
    flags = ("--epochs", "2", "--checkpoint-every", "10", "--callback", f"{code}:Mine")
    assert train(tmp_path, "--run", "r", *flags) != 0
    code.unlink()
    assert train(tmp_path, "--resume", "auto") != 0
    assert "RM732" in capsys.readouterr().err
    assert train(tmp_path, "--resume", "auto", "--callback", "none") == 0
    assert events(capsys.readouterr().out)["callbacks_changed"]["changes"] == [f"{code}:Mine is not used any more"]


@long
def test_callback_of_all_ranks_stops_both_from_rank_1_and_one_of_rank_0_is_called_there_alone(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        HEAD
        + "class Each(Callback):\n    all_ranks = True\n    def on_step_end(self, run, taken):\n"
        + "        run.should_stop = run.ranks.rank == 1 and run.state.step == 7\n"
        + "class First(Callback):\n    def on_train_end(self, run):\n"
        + "        print('ended on', run.ranks.rank, 'at', run.state.step)\n"
    )
    argv = [sys.executable, "-m", "trainer", "train", "--device", "cpu", "--ranks", "2", "--run", "r"]
    argv += ["--output", str(tmp_path), "--callback", f"{code}:Each,{code}:First", "--max-restarts", "0"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.findall(r"ended on \d at \d+", done.stderr) == ["ended on 0 at 7"]
    assert json.loads((tmp_path / "r" / "metrics.jsonl").read_text().splitlines()[-1])["epoch"] == 1
