"""Figures of rows: the baselines' fit to the training part is made once, and is that of each part on its own."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.fixtures.baselines import baseline_forecasts
from tests.fixtures.next_commands import unknown_options
from tests.fixtures.tables import mixed, written
from trainer.analysis.compress.measure import measured
from trainer.config.train import TrainConfig
from trainer.tasks.bars import prepare
from trainer.tasks.metrics import regression
from trainer.tasks.metrics.regression import r2, rmse
from trainer.tasks.metrics.simple_models import codes_apart
from trainer.tasks.prepared import Task
from trainer.tasks.row_task import RowTask
from trainer.tasks.task import Evaluation

pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each least-squares fit that was made."""
    made: list[int] = []
    fit = regression._least_squares

    def counted(rows: Any, codes: Any) -> Any:
        made.append(len(rows))
        return fit(rows, codes)

    monkeypatch.setattr(regression, "_least_squares", counted)
    return made


class Blank(torch.nn.Module):
    """A network whose outputs are all zero."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(rows), self.outputs)


def task_of(folder: Path, target: str) -> Task:
    return prepare(TrainConfig.of(data=written(mixed(), folder), target=target).data)


def evaluated(task: Task, baselines: str) -> dict[str, Any]:
    blank = Evaluation(
        forward=Blank(len(task.labels or ("number",))),
        device=torch.device("cpu"),
        dtype=torch.float32,
        rows=1024,
        rank_slice=lambda count: slice(0, count),
        sum=lambda tensor: tensor,
        autocast=contextlib.nullcontext,
    )
    return RowTask(data=task, baselines=baselines).evaluate(blank)


def test_next_commands_are_tasks_with_options_that_exist(folder: Path) -> None:
    commands = RowTask(data=task_of(folder, "z")).next_commands({})
    assert [command.split()[1] for command in commands] == ["predict", "report"]
    assert unknown_options(commands) == set()


@pytest.mark.parametrize("baselines", ["none", "linear"])
def test_linear_fit_of_a_number_is_made_once_for_every_part_and_comparison(
    baselines: str, folder: Path, fits: list[int]
) -> None:
    task = task_of(folder, "z")
    found = evaluated(task, baselines)
    assert fits == [len(task.split.train)]
    for name, part in (("validation", task.split.validation), ("test", task.split.test)):
        linear = baseline_forecasts(task.split.train, part, codes_apart(task))["linear"]
        blank = np.full(len(part), task.targets.unscale(np.zeros(1))[0])
        assert found[name]["r2_vs_linear"] == r2(part.target, blank, linear)
        if baselines == "linear":
            assert found["baselines"]["linear"][name]["rmse"] == rmse(part.target, linear)


def test_classes_need_no_linear_fit(folder: Path, fits: list[int]) -> None:
    found = evaluated(task_of(folder, "y"), "linear")
    assert fits == [] and found["test"]["accuracy"] > 0
    assert found["baselines"]["linear"]["how"].startswith("logistic regression")


def test_smaller_network_is_measured_with_one_linear_fit(folder: Path, fits: list[int]) -> None:
    task = task_of(folder, "z")
    found = measured(torch.nn.Linear(len(task.features), 1), task, file_bytes=1)
    assert fits == [len(task.split.train)]
    assert found["test"]["rows"] == len(task.split.test)
