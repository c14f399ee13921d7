from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from trainer.cli import main
from trainer.models.mlp import mlp
from trainer.runtime.errors import TrainerError
from trainer.tasks.export import compare_onnx, deployable, files, onnx, require

RECORD = {
    "features": [{}, {}],
    "scaler": {"mean": [1.0, 2.0], "std": [2.0, 4.0]},
    "target": {"mean": -3.0, "std": 0.5},
    "metrics": {},
}


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in packages else real(name, *rest)
    )


def test_missing_package_ends_the_run_before_it_begins(tmp_path: Path, monkeypatch, capsys) -> None:
    hide(monkeypatch, "onnx", "onnxscript")
    assert main(["train", "--export", "onnx", "--output", str(tmp_path / "out")]) == 2
    error = json.loads(capsys.readouterr().out)
    assert error["code"] == "RM549"
    assert error["what"].startswith("--export onnx needs onnx")
    assert error["what"].endswith("not installed here")
    assert not (tmp_path / "out").exists()


def test_empty_format_list_needs_no_package(monkeypatch) -> None:
    hide(monkeypatch, "onnx", "onnxscript")
    require(())


def test_scaling_is_part_of_what_is_deployed() -> None:
    model = mlp(2, (3,))
    network = deployable(model, RECORD)
    features = torch.tensor([[3.0, 10.0]])
    with torch.no_grad():
        expected = model(torch.tensor([[1.0, 2.0]])) * 0.5 - 3
        assert torch.equal(network(features), expected)


@pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="onnx and onnxscript are not installed here")
def test_onnx_model_takes_any_number_of_rows() -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed here")
    model = mlp(2, (3,))
    session = onnxruntime.InferenceSession(onnx(model, RECORD), providers=["CPUExecutionProvider"])
    for rows in (1, 2, 7):
        (answer,) = session.run(None, {"features": torch.randn(rows, 2).numpy()})
        assert answer.shape == (rows, 1)


def test_file_that_was_not_run_is_reported(monkeypatch) -> None:
    hide(monkeypatch, "onnxruntime")
    assert compare_onnx(b"", nn.Identity()) == {
        "checked_with": None,
        "why": "onnxruntime is not installed, so the file was written and not run",
    }


@pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="onnx and onnxscript are not installed here")
def test_network_that_the_exporter_refuses_is_reported() -> None:
    class Odd(nn.Module):
        def forward(self, values: torch.Tensor) -> Any:
            return values if values.sum().item() > 0 else -values

    with pytest.raises(TrainerError) as caught:
        onnx(Odd(), RECORD)
    assert caught.value.code == "RM549"


def test_export_of_equal_weights_gives_equal_bytes() -> None:
    model = mlp(2, (3,))
    first, second = (files(model, json.loads(json.dumps(RECORD))) for _ in range(2))
    assert first == second
    assert first.keys() == {"model.pt", "model.safetensors"}
