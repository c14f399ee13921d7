"""Simpler models next to a network on SYNTHETIC rows: their figures and the difference, never in the way."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fixtures.later import imported_later
from tests.fixtures.tables import mixed, task_of, written
from trainer.analysis.report.command import simpler
from trainer.cli import main
from trainer.config.train import TrainConfig
from trainer.tasks.bars import prepare
from trainer.tasks.metrics import simple_models
from trainer.tasks.metrics.comparison import ON_REQUEST, name_of, simpler_models, verdict
from trainer.tasks.metrics.score import baselines_by_part
from trainer.tasks.metrics.simple_models import codes_apart
from trainer.tasks.metrics.summary import row_lines
from trainer.tasks.prepared import Task

ensemble = imported_later("sklearn.ensemble", "scikit-learn is for tests alone")
pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparison")


def outputs_of(task: Task, column: Any) -> dict[str, Any]:
    parts = {"validation": task.split.validation, "test": task.split.test}
    return {name: (part, column(part)) for name, part in parts.items()}


def compared(task: Task, outputs: dict[str, Any], requested: str) -> dict[str, dict[str, Any]]:
    against = baselines_by_part(task, {name: part for name, (part, _) in outputs.items()})
    return simpler_models(task, outputs, against, requested)


def test_trees_are_those_of_scikit_learn_on_the_same_rows(folder: Path) -> None:
    task = task_of(folder, "z")
    train, test = task.split.train, task.split.test
    categories = [values > 0 for values in codes_apart(task)]
    theirs = ensemble.HistGradientBoostingRegressor(random_state=0, categorical_features=categories)
    forecast = theirs.fit(train.features, train.target).predict(test.features)
    found = compared(task, outputs_of(task, lambda part: np.zeros((len(part), 1))), "auto")["trees"]["test"]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((test.target - forecast) ** 2)))


def test_lead_over_a_model_is_the_difference_of_both_figures(folder: Path) -> None:
    task = task_of(folder, "z")
    own = outputs_of(task, lambda part: task.targets.scale(part.target)[:, None])  # exact: R² is 1
    for each in compared(task, own, "auto").values():
        assert each["test"]["ahead"] == pytest.approx(1 - each["test"]["r2_vs_mean"])
        assert each["test"]["ahead_low"] < each["test"]["ahead"] < each["test"]["ahead_high"]
        assert each["test"]["r2_vs_mean_low"] < each["test"]["r2_vs_mean"] < each["test"]["r2_vs_mean_high"]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"ahead": 0.2, "ahead_low": 0.1, "ahead_high": 0.3}, "the network is ahead by 0.200 (+0.100 to +0.300)"),
        ({"ahead": -0.2, "ahead_low": -0.3, "ahead_high": -0.1}, "the network is behind by 0.200 (-0.300 to -0.100)"),
        (
            {"ahead": 0.0, "ahead_low": -0.1, "ahead_high": 0.1},
            "the network is ahead by 0.000 (-0.100 to +0.100: no clear difference)",
        ),
        ({"ahead": 0.5}, "the network is ahead by 0.500"),
        ({"ahead": None}, "no difference to state"),
    ],
)
def test_verdict_states_the_difference_and_whether_it_is_clear(figures: dict[str, Any], expected: str) -> None:
    assert verdict(figures) == expected


def test_trees_without_scikit_learn_are_those_of_numpy_and_named_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    task = task_of(folder, "z")
    found = compared(task, outputs_of(task, lambda part: np.zeros((len(part), 1))), "auto")
    assert "in numpy, 100 rounds; scikit-learn is not installed" in found["trees"]["how"]
    assert name_of("trees", found["trees"], classes=False) == "boosted trees in numpy"
    assert name_of("linear", found["linear"], classes=False) == "a linear fit"
    assert all(found[name]["test"]["r2_vs_mean"] > 0 for name in ("linear", "trees"))
    monkeypatch.setattr(simple_models, "MOST_FORECASTS", 1)
    found = compared(task, outputs_of(task, lambda part: np.zeros((len(part), 1))), "auto")
    assert found["trees"]["absent"].startswith("scikit-learn is not installed, and without it ")


def test_model_that_fails_is_named_and_takes_nothing_with_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise FloatingPointError("overflow")

    monkeypatch.setattr(sys.modules["trainer.tasks.metrics.comparison"], "logistic", failing)
    task = task_of(folder, "y")
    found = compared(task, outputs_of(task, lambda part: np.zeros((len(part), len(task.labels or ())))), "auto")
    assert found["linear"] == {"absent": "FloatingPointError: overflow"}
    assert "how" in found["trees"]


def test_run_has_simpler_models_in_record_summary_and_page_and_none_leaves_the_model_as_it_is(folder: Path) -> None:
    path = written(mixed(), folder)
    quick = ["train", "--data", str(path), "--target", "y", "--epochs", "3", "--device", "cpu", "--output", str(folder)]
    records = {}
    for name, flags in (("auto", ()), ("none", ("--baselines", "none"))):
        assert main([*quick, "--run", name, *flags]) == 0
        records[name] = json.loads((folder / name / "metadata.json").read_text())
    auto, none = records["auto"], records["none"]
    assert set(auto["metrics"]["baselines"]) == {"linear", "trees"}
    assert "baselines" not in none["metrics"] and "baselines" not in auto["config"]
    assert none["config"]["baselines"] == "none"
    assert auto["artifacts"]["model.safetensors"] == none["artifacts"]["model.safetensors"]
    assert {n: v for n, v in auto["metrics"].items() if n != "baselines"} == none["metrics"]
    from trainer.analysis.compress.subject import Given, read_subject
    from trainer.tasks.task import Trained

    trained = Trained(measurements=3, seconds=1.0, rows=1)
    line = row_lines(auto, trained)["simpler"]
    assert line.startswith("test: logistic regression 0.") and "; boosted trees 0." in line
    assert "simpler" not in row_lines(none, trained)
    ((heading, content),) = simpler(read_subject(folder / "auto", Given()))
    assert heading == "Was a network worth it?" and "boosted trees" in content and "logistic regression" in content
    assert simpler(read_subject(folder / "none", Given())) == []


def test_bars_have_trees_on_request_alone() -> None:
    task = prepare(TrainConfig.of(target="direction").data)
    outputs = outputs_of(task, lambda part: np.zeros((len(part), 2)))
    auto = compared(task, outputs, "auto")
    assert auto["trees"] == {"absent": ON_REQUEST}
    assert auto["linear"]["how"].startswith("logistic regression") and "ahead_low" not in auto["linear"]["test"]
    assert "how" in compared(task, outputs, "trees")["trees"]
    assert set(compared(task, outputs, "linear")) == {"linear"}
