"""Figures of classes beside scikit-learn's, and of intervals beside those that theory gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fixtures.later import imported_later
from trainer.tasks.metrics.classification import auc, confusion, macro_f1

metrics = imported_later("sklearn.metrics", "scikit-learn is for tests alone")


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_auc_f1_and_confusion_equal_those_of_scikit_learn(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = np.concatenate([np.arange(classes), rng.integers(0, classes, 200)])
    chances = np.round(rng.dirichlet(np.ones(classes), len(target)), 2) + 0.01  # rounded, so that many tie
    chances /= chances.sum(axis=1, keepdims=True)
    answer = chances.argmax(axis=1)
    given = chances[:, 1] if classes == 2 else chances
    options = {} if classes == 2 else {"multi_class": "ovr", "average": "macro"}
    assert auc(target, chances) == pytest.approx(metrics.roc_auc_score(target, given, **options), abs=1e-12)
    counts = confusion(target, answer, classes)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(target, answer))
    assert macro_f1(counts) == pytest.approx(metrics.f1_score(target, answer, average="macro"), abs=1e-12)


def test_auc_of_a_single_class_is_none() -> None:
    assert auc(np.zeros(5, np.int64), np.full((5, 2), 0.5)) is None


def test_macro_f1_leaves_out_a_class_that_occurs_nowhere() -> None:
    target, answer = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])
    assert macro_f1(confusion(target, answer, 3)) == pytest.approx((4 / 5 + 2 / 3) / 2)
