from __future__ import annotations

import importlib.util
import json
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.cli import main
from trainer.runtime.errors import TrainerError
from trainer.telemetry.trackers import require, start


class Recorder:
    """A STAND-IN for the modules wandb and mlflow: it writes down how it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **words: Any) -> Recorder:
            self.calls.append((name, arguments, words))
            return self

        return call


def scalars(file: Path) -> dict[tuple[str, int], float]:
    """Read the scalars of a TensorBoard event file: records of length, CRC, event, CRC."""
    from tensorboardX.proto import event_pb2

    content, found = file.read_bytes(), {}
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event = event_pb2.Event.FromString(content[12 : 12 + length])
        found |= {
            (value.tag, event.step): value.simple_value for value in event.summary.value if not value.tensor.dtype
        }
        content = content[16 + length :]
    return found


def test_tensorboard_gets_every_figure_at_its_step(tmp_path: Path) -> None:
    (tracker,) = start(["tensorboard"], tmp_path, "one", {"epochs": 3})
    tracker.log(5, {"train_loss": 0.5, "waiting/data": 0.25})
    tracker.close()
    (file,) = (tmp_path / "tensorboard").iterdir()
    written = scalars(file)
    assert written["train_loss", 5] == 0.5
    assert written["waiting/data", 5] == 0.25


def test_weights_and_biases_gets_name_configuration_and_figures(tmp_path: Path, monkeypatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "wandb", recorder)
    (tracker,) = start(["wandb"], tmp_path, "one", {"epochs": 3})
    tracker.log(5, {"loss": 0.5})
    tracker.close()
    assert recorder.calls == [
        ("init", (), {"project": "rocmatrix", "name": "one", "dir": str(tmp_path), "config": {"epochs": 3}}),
        ("log", ({"loss": 0.5},), {"step": 5}),
        ("finish", (), {}),
    ]


def test_mlflow_gets_name_configuration_and_figures(tmp_path: Path, monkeypatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    (tracker,) = start(["mlflow"], tmp_path, "one", {"epochs": 3})
    tracker.log(5, {"loss": 0.5})
    tracker.close()
    assert [name for name, *_ in recorder.calls] == [
        "set_experiment",
        "start_run",
        "log_params",
        "log_metrics",
        "end_run",
    ]
    assert recorder.calls[3] == ("log_metrics", ({"loss": 0.5},), {"step": 5})


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_tracker_that_is_not_installed_ends_the_run_before_it_begins(tmp_path: Path, monkeypatch, capsys, name) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda each, *rest: None if each == name else real(each, *rest))
    assert main(["train", "--track", f"tensorboard,{name}", "--output", str(tmp_path / "out")]) == 2
    error = json.loads(capsys.readouterr().out)
    assert (error["code"], error["what"]) == ("RM507", f"--track {name} needs the package {name}, not installed here")
    assert not (tmp_path / "out").exists()


def test_tracker_that_does_not_start_is_named(tmp_path: Path, monkeypatch) -> None:
    def refuse(**words: Any) -> None:
        raise PermissionError("no key")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=refuse))
    with pytest.raises(TrainerError, match="PermissionError: no key") as caught:
        start(["wandb"], tmp_path, "one", {})
    assert caught.value.code == "RM507"


def test_empty_tracker_list_needs_no_package() -> None:
    require(())
