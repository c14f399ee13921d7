"""Simpler models on SYNTHETIC rows: equal to scikit-learn's own, and bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fixtures.later import imported_later
from tests.fixtures.tables import task_of
from trainer.tasks.metrics import simple_models
from trainer.tasks.metrics.simple_models import AbsentError, codes_apart, logistic, some_rows, work_of
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


def test_work_is_bounded_and_too_much_is_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert work_of(1000, 10, 0) == work_of(1000, 10, 2) == (1000, 100)
    rows, rounds = work_of(200_000, 10, 20)
    assert 10_000 < rows < 200_000 and rounds == 10  # fewer rows before fewer rounds
    assert work_of(3000, 700, 100)[0] == 0
    train = task_of(folder, "y").split.train
    with pytest.raises(AbsentError, match=f"{len(train)} rows take more than a few seconds, and 50 are too few"):
        some_rows(train, 50)
    monkeypatch.setattr(simple_models, "LEAST_ROWS", 50)
    assert some_rows(train, 50).date.tolist()[::49] == [train.date[0], train.date[-1]]
    assert len(some_rows(train, 50)) == 50
