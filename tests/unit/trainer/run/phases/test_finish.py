"""What a run leaves at its end can be read by others."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.fixtures.quick_runs import train
from trainer.run.phases import finish as end
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")


def test_figure_that_json_cannot_hold_does_not_lose_the_run(tmp_path: Path, monkeypatch, capsys) -> None:
    figures = {part: {"rows": 1, "rmse": float("inf"), "r2_vs_mean": float("nan")} for part in ("validation", "test")}
    baselines = {f"r2_vs_{name}": 0.5 for name in ("persistence", "linear")}
    monkeypatch.setattr(end, "scores", lambda *_: {name: each | baselines for name, each in figures.items()})
    assert train(tmp_path, "--run", "one") == 0
    stderr = capsys.readouterr().err
    assert "null in metadata.json" in stderr and "metrics.test.rmse" in stderr and "none / none against" in stderr
    record = json.loads((tmp_path / "one" / "metadata.json").read_text())
    jsonschema.validate(record, json_schema())
    assert record["metrics"]["test"]["rmse"] is None and record["absent"]["metrics.test.rmse"]
