"""Simpler models on SYNTHETIC rows: equal to scikit-learn's own, and bounded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.fixtures.later import imported_later
from tests.fixtures.tables import task_of
from trainer.data.dataset import Dataset
from trainer.tasks.metrics import simple_models
from trainer.tasks.metrics.simple_models import (
    NUMPY,
    SKLEARN,
    AbsentError,
    codes_apart,
    logistic,
    numpy_trees,
    some_rows,
    trees,
    work_of,
)
from trainer.tasks.prepared import Task

linear_model = imported_later("sklearn.linear_model", "scikit-learn is for tests alone")
pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparison")


def design(task: Task, features: Any) -> Any:
    codes = codes_apart(task)
    scaled = task.inputs.scale(features)
    plain = [place for place, values in enumerate(codes) if not values]
    apart = [features[:, [place]] == np.arange(values) for place, values in enumerate(codes) if values]
    return np.column_stack([scaled[:, plain], *apart]).astype(np.float64)


def test_logistic_regression_equals_that_of_scikit_learn(folder: Path) -> None:
    task = task_of(folder, "y")
    assert any(codes_apart(task))
    train, test = task.split.train, task.split.test
    theirs = linear_model.LogisticRegression(tol=1e-8, max_iter=5000).fit(design(task, train.features), train.target)
    ours = logistic(task, {"test": test})
    np.testing.assert_allclose(ours.answers["test"], theirs.predict_proba(design(task, test.features)), atol=2e-3)
    assert ours.rows == len(train)


def test_work_of_trees_is_bounded() -> None:
    for cost in (SKLEARN, NUMPY):
        assert work_of(1000, 10, 0, cost) == work_of(1000, 10, 2, cost) == (1000, 100)
        assert work_of(7000, 10, 0, cost) == (7000, 100)
        rows, rounds = work_of(2_000_000, 10, 8, cost)
        assert 1_000 < rows < 300_000 and rounds == cost.least_rounds  # fewer rows before fewer rounds
        assert work_of(3000, 700, 100, cost)[0] == 0


def test_trees_in_numpy_are_about_those_of_scikit_learn(folder: Path) -> None:
    for target in ("y", "z"):
        task = task_of(folder, target)
        parts = {"test": task.split.test, "validation": task.split.validation}
        theirs, ours = trees(task, parts), numpy_trees(task, parts)
        assert ours.rows == theirs.rows == len(task.split.train)
        for name in parts:
            assert ours.answers[name].shape == theirs.answers[name].shape
            assert np.corrcoef(ours.answers[name].ravel(), theirs.answers[name].ravel())[0, 1] > 0.95


def test_table_of_20_classes_has_trees_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(15_000, 25))
    target = np.floor(20 * rng.random(15_000))
    rows = Dataset(date=np.arange(15_000), features=features, target=target, persistence=target)
    task: Any = SimpleNamespace(
        split=SimpleNamespace(train=rows), features=range(25), labels=[str(n) for n in range(20)], embeddings=()
    )
    work: list[Any] = []
    monkeypatch.setattr(
        simple_models,
        "boosted",
        lambda _, target, classes, rounds: work.append((len(target), rounds)) or np.zeros((9, 20)),
    )
    fitted = numpy_trees(task, {"test": rows[:9]})
    assert work == [(fitted.rows, NUMPY.least_rounds)] and 5_000 < fitted.rows < 15_000


def test_rows_in_excess_are_left_out_of_trees(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = task_of(folder, "y").split.train
    with pytest.raises(AbsentError, match=f"{len(train)} rows take more than a few seconds, and 50 are too few"):
        some_rows(train, 50)
    monkeypatch.setattr(simple_models, "LEAST_ROWS", 50)
    assert some_rows(train, 50).date.tolist()[::49] == [train.date[0], train.date[-1]]
    assert len(some_rows(train, 50)) == 50
