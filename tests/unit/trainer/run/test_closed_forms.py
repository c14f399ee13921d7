"""Linear and logistic models trained here, against what can be computed: numpy's least squares, statsmodels' Logit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from tests.fixtures.configs import rows_config
from tests.fixtures.later import imported_later
from trainer.cli import main
from trainer.data.bar import Floats
from trainer.tasks.bars import prepare
from trainer.tasks.prepared import Task

datasets = imported_later("sklearn.datasets", "scikit-learn, which brings the data, is not installed")
statsmodels = imported_later("statsmodels.api", "statsmodels is not installed")
pytestmark = pytest.mark.usefixtures("torch_as_before")

FULL_BATCH = ("--hidden-layers", "none", "--batch-size", "100000", "--epochs", "1000", "--learning-rate", "0.1")
EXACT = ("--schedule", "cosine", "--weight-decay", "0", "--weights", "last", "--precision", "fp64")
OTHER = ("--device", "cpu", "--nan-guard", "0", "--checkpoint-every", "0", "--run", "one", "--target", "target")
COLUMNS = ["mean texture", "mean smoothness", "mean symmetry", "texture error"]  # few, so that classes overlap


def trained(path: Path, folder: Path) -> tuple[Task, Floats, Floats]:
    """Return the task, and weight (outputs, inputs) and bias (outputs,) of the model."""
    assert main(["train", "--data", str(path), "--output", str(folder), *FULL_BATCH, *EXACT, *OTHER]) == 0
    weights = load_file(folder / "one" / "model.safetensors")
    task = prepare(rows_config(data=path, target="target"))
    return task, weights["0.weight"].numpy(), weights["0.bias"].numpy()


def design(task: Task) -> Floats:
    return np.column_stack([task.inputs.scale(task.split.train.features), np.ones(len(task.split.train))])


def test_linear_model_is_that_of_least_squares(tmp_path: Path) -> None:
    path = tmp_path / "diabetes.csv"
    datasets.load_diabetes(as_frame=True).frame.to_csv(path, index=False)
    task, weight, bias = trained(path, tmp_path)
    exact, *_ = np.linalg.lstsq(design(task), task.targets.scale(task.split.train.target), rcond=None)
    assert np.abs([*weight[0], *bias] - exact).max() < 1e-4


def test_logistic_model_is_that_of_maximum_likelihood(tmp_path: Path) -> None:
    path = tmp_path / "cancer.csv"
    frame = datasets.load_breast_cancer(as_frame=True).frame
    frame[[*COLUMNS, "target"]].to_csv(path, index=False)
    task, weight, bias = trained(path, tmp_path)
    exact = statsmodels.Logit(task.split.train.target, design(task)).fit(disp=0, tol=1e-12, maxiter=200).params
    assert np.abs([*(weight[1] - weight[0]), bias[1] - bias[0]] - exact).max() < 1e-4
