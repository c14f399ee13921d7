from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from tests.fixtures.bar_files import read_whole
from tests.fixtures.quick_runs import train
from trainer.cli import main
from trainer.models.mlp import mlp
from trainer.run import train as job
from trainer.run.phases import finish as end
from trainer.runtime.paths import SAMPLE
from trainer.tasks.bars import make_dataset
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")

ROOT = Path(job.__file__).parents[2]


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def start(output: Path, *flags: str, **environment: str) -> subprocess.Popen[str]:
    """The trainer as a process of its own, as the host starts it."""
    command = [sys.executable, "-m", "trainer", "train", "--output", str(output), "--device", "cpu", *flags]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on the shipped data, with provenance as the host would give it."""
    output = tmp_path_factory.mktemp("TRAINING")
    flags = ("--run", "one", "--epochs", "20", "--cell", "cpu-torch2.13.0", "--commit", "abc123")
    run = start(output, *flags)
    assert run.communicate(timeout=120)[1] and run.returncode == 0
    return output / "one"


@pytest.fixture(scope="module")
def metadata(finished: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((finished / "metadata.json").read_text())
    return content


def test_run_is_seven_files(finished: Path, metadata: dict[str, Any]) -> None:
    files = {path.name for path in finished.iterdir()}
    logs = {"metrics.jsonl", "batches.jsonl", "telemetry.jsonl"}
    assert files == {"model.pt", "model.safetensors", "metadata.json", "recipe.yaml"} | logs
    for name, record in metadata["artifacts"].items():
        content = (finished / name).read_bytes()
        assert record == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert metadata["artifacts"].keys() == files - {"metadata.json"}


def test_metadata_names_what_decides_the_result(metadata: dict[str, Any]) -> None:
    assert metadata["data"]["sha256"] == hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    assert (metadata["data"]["rows"], metadata["data"]["first_date"]) == (1257, "2014-01-03")
    assert (metadata["seed"], metadata["threads"], metadata["device"]["kind"]) == (0, 1, "cpu")
    assert metadata["versions"]["torch"] == torch.__version__
    assert (metadata["matrix_cell"], metadata["git_commit"]) == ("cpu-torch2.13.0", "abc123")
    assert metadata["image"] is None
    assert "--image" in metadata["absent"]["image"]
    assert metadata["absent"].keys() == {"image"}
    assert metadata["split"]["embargo"] == metadata["target"]["horizon"] == 5
    assert (metadata["config"]["epochs"], metadata["config"]["run"]) == (20, "one")


def test_metrics_hold_a_line_per_epoch_with_the_best_marked(finished: Path, metadata: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 21))
    best = min(lines, key=lambda line: line["validation_loss"])
    assert best == {name: metadata["metrics"]["best"][name] for name in best}
    assert "seconds" not in best


@pytest.mark.parametrize("load", [load_file, partial(torch.load, weights_only=True)], ids=["safetensors", "pt"])
def test_plain_torch_and_the_metadata_give_the_reported_figures(
    finished: Path, metadata: dict[str, Any], load: Callable[[Path], dict[str, torch.Tensor]]
) -> None:
    """Nothing of the trainer but its features is used: the network, scaling and split come from the files."""
    widths = metadata["model"]["widths"]
    layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))[:-1]
    suffix = ".safetensors" if load is load_file else ".pt"
    model.load_state_dict(load(finished / f"model{suffix}"))
    rows = make_dataset(read_whole(SAMPLE)[0], metadata["target"]["horizon"])
    for part in ("validation", "test"):
        first, last = (np.datetime64(metadata["split"][part][f"{end}_date"], "s") for end in ("first", "last"))
        chosen = (first <= rows.date) & (rows.date <= last)
        scaled = (rows.features[chosen] - metadata["scaler"]["mean"]) / metadata["scaler"]["std"]
        with torch.no_grad():
            outputs = model(torch.tensor(scaled, dtype=torch.float32)).double().numpy().ravel()
        forecast = outputs * metadata["target"]["std"] + metadata["target"]["mean"]
        errors = rows.target[chosen] - forecast
        assert metadata["metrics"][part]["rows"] == chosen.sum()
        assert metadata["metrics"][part]["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)


def test_training_beats_the_free_forecasts(tmp_path: Path) -> None:
    assert main(["train", "--output", str(tmp_path), "--device", "cpu", "--run", "one"]) == 0
    metrics = json.loads((tmp_path / "one" / "metadata.json").read_text())["metrics"]
    for part in ("validation", "test"):
        assert metrics[part]["r2_vs_mean"] > 0.4
        assert metrics[part]["r2_vs_persistence"] > 0.2
        assert metrics[part]["r2_vs_linear"] > 0


def test_events_report_start_epochs_and_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "--run", "one") == 0
    reported = events(capsys)
    assert [event["event"] for event in reported] == ["start", "feed", "step", "epoch", "epoch", "epoch", "done"]
    assert reported[-1]["folder"] == str(tmp_path / "one")
    stored = json.loads((tmp_path / "one" / "metadata.json").read_text())["metrics"]
    assert {name: reported[-1][name] for name in stored} == stored


def test_summary_is_short_and_names_device_reason_and_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path, "--run", "one") == 0
    printed = capsys.readouterr()
    lines = printed.err.splitlines()[-5:]
    assert [line.split()[0] for line in lines] == ["device", "data", "best", "R²", "simpler"]
    assert "asked for with --device" in lines[0]
    done = json.loads(printed.out.splitlines()[-1])
    assert (done["event"], done["folder"]) == ("done", str(tmp_path / "one"))


def test_run_repeated_gives_the_same_bytes_whatever_the_environment(tmp_path: Path) -> None:
    several = {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    flags = ("--epochs", "5", "--run")
    runs = [start(tmp_path, *flags, "a", OMP_NUM_THREADS="1"), start(tmp_path, *flags, "b", **several)]
    for run in runs:
        assert "Error" not in run.communicate(timeout=120)[1]
        assert run.returncode == 0
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b")]
    assert files[0] == files[1]


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    for seed in ("0", "1"):
        assert train(tmp_path, "--seed", seed, "--run", seed) == 0
    assert (tmp_path / "0" / "model.safetensors").read_bytes() != (tmp_path / "1" / "model.safetensors").read_bytes()


def test_weights_file_holds_no_clock_and_no_path(finished: Path) -> None:
    content = (finished / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert header["__metadata__"] == {"format": "pt"}


def test_size_estimate_covers_what_is_written(tmp_path: Path) -> None:
    model = mlp(12, (32, 16))
    assert train(tmp_path, "--run", "one") == 0
    written = sum(path.stat().st_size for path in (tmp_path / "one").iterdir())
    assert written <= job.size_estimate(model, epochs=3, steps=3 * 26)


def test_sigterm_keeps_a_checkpoint_and_ends_resumably(tmp_path: Path) -> None:
    run = start(tmp_path, "--epochs", "1000000", "--run", "one")
    assert run.stdout is not None
    assert json.loads(run.stdout.readline())["event"] == "start"
    assert (tmp_path / ".one.partial").is_dir()
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 75
    assert json.loads(out.splitlines()[-1])["code"] == "RM554"
    assert "--resume auto" in err
    assert "Traceback" not in err
    assert len(list((tmp_path / ".one.partial" / "checkpoints").iterdir())) == 1


def test_ctrl_c_before_any_checkpoint_leaves_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, "--epochs", "1000000", "--run", "one")
    assert run.stdout is not None
    assert json.loads(run.stdout.readline())["event"] == "start"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert json.loads(out.splitlines()[-1])["code"] == "RM598"
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_reader_that_goes_away_ends_the_run_cleanly(tmp_path: Path) -> None:
    run = start(tmp_path, "--epochs", "1000000", "--run", "one")
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.readline()
    run.stdout.close()
    assert run.wait(60) == 2
    err = run.stderr.read()
    assert "RM545" in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert list(tmp_path.iterdir()) == []


def failing(*arguments: Any, **named: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("where", "step"), [(job, "fit"), (end, "scores"), (end, "save")], ids=["fit", "scores", "save"]
)
def test_failure_at_any_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: Any, step: str
) -> None:
    monkeypatch.setattr(where, step, failing)
    assert train(tmp_path, "--run", "one") == 2
    assert events(capsys)[-1]["code"] == "RM543"
    assert list(tmp_path.iterdir()) == []


def test_disk_too_small_is_refused_before_training(
    mount_tmpfs: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    disk = mount_tmpfs("size=32k")
    assert train(disk, "--run", "one") == 2
    reported = events(capsys)
    assert [event["event"] for event in reported] == ["error"]
    assert reported[0]["code"] == "RM543"
    assert "bytes" in reported[0]["what"]
    assert list(disk.iterdir()) == []


def test_disk_that_fills_during_the_run(
    mount_tmpfs: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "size_estimate", lambda model, epochs, steps: 0)
    disk = mount_tmpfs("size=12k")
    assert train(disk, "--run", "one") == 2
    reported = events(capsys)
    assert reported[-2]["event"] == "epoch"
    assert reported[-1]["code"] == "RM543"
    assert re.search(r"\.one\.partial/model\.\w+$", reported[-1]["where"])
    assert list(disk.iterdir()) == []


def test_read_only_output_folder(mount_tmpfs: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    disk = mount_tmpfs("ro")
    assert train(disk, "--run", "one") == 2
    assert [event.get("code") for event in events(capsys)] == ["RM542"]


def test_truncated_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.csv"
    cut.write_bytes(SAMPLE.read_bytes()[:40_000])
    assert train(tmp_path / "TRAINING", "--data", str(cut)) == 2
    error = events(capsys)[-1]
    assert (error["code"], error["where"]) == ("RM516", str(cut))
    assert not (tmp_path / "TRAINING").exists()


def test_divergence_ends_with_a_message_and_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "--learning-rate", "10", "--hidden-layers", "256,256,256,256,256,256,256,256") == 2
    assert events(capsys)[-1]["code"] == "RM506"
    assert [path.parent.name for path in tmp_path.rglob("nan-step-*.pt")] == [path.name for path in tmp_path.iterdir()]


def test_divergence_without_the_guard_ends_with_a_message_too(tmp_path: Path, capsys) -> None:
    deep = ",".join(["256"] * 8)
    assert train(tmp_path, "--learning-rate", "10", "--hidden-layers", deep, "--nan-guard", "0") == 2
    assert events(capsys)[-1]["code"] == "RM530"
    assert list(tmp_path.iterdir()) == []


def test_run_that_exists_is_refused_before_training(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.iterdir()}
    assert train(finished.parent, "--run", "one") == 2
    assert [event.get("code") for event in events(capsys)] == ["RM540"]
    assert before == {path: path.stat().st_mtime_ns for path in finished.iterdir()}


def test_runs_without_a_name_do_not_collide(tmp_path: Path) -> None:
    began = time.monotonic()
    assert train(tmp_path) == train(tmp_path) == 0
    assert len(list(tmp_path.iterdir())) == 2
    assert time.monotonic() - began < 60


def test_equal_runs_write_equal_metrics_with_any_instrumentation(tmp_path: Path) -> None:
    watched = {"one": [], "two": ["--track", "tensorboard", "--nan-guard", "7"], "three": ["--nan-guard", "0"]}
    for name, more in watched.items():
        assert train(tmp_path, "--run", name, *more) == 0
    for file in ("metrics.jsonl", "model.safetensors", "model.pt"):
        assert len({(tmp_path / name / file).read_bytes() for name in ("one", "two", "three")}) == 1
    assert (tmp_path / "two" / "tensorboard").is_dir()


def test_written_metadata_fits_the_schema_and_has_no_field_beyond_it(metadata: dict[str, Any]) -> None:
    strict = json_schema()
    for definition in strict["$defs"].values():
        definition["additionalProperties"] = False
    jsonschema.validate(metadata, strict)
