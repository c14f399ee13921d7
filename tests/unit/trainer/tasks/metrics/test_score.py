"""Figures of any task: which baselines it has, which columns are codes, and the confusion of classes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from trainer.tasks.metrics import score
from trainer.tasks.metrics.classification import CLASS_BASELINES
from trainer.tasks.metrics.regression import BASELINES


def task(**about):
    return SimpleNamespace(**{"labels": None, "horizon": None, "embeddings": (), "features": ()} | about)


@pytest.mark.parametrize(
    ("about", "names"),
    [
        ({"labels": ("a", "b")}, set(CLASS_BASELINES)),
        ({"horizon": 1}, set(BASELINES)),
        ({}, set(BASELINES) - {"persistence"}),
    ],
)
def test_baselines_are_those_that_a_task_can_have(about, names):
    assert set(score.baselines_of(task(**about))) == names


def test_confusion_counts_each_class_by_its_answers():
    outputs = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    part = SimpleNamespace(target=np.array([0.0, 0.0, 1.0]))
    assert score.confusions_of(task(labels=("a", "b")), {"test": (part, outputs)}) == {"test": [[1, 1], [1, 0]]}
    assert score.confusions_of(task(), {"test": (part, outputs)}) == {}


def test_outputs_become_numbers_of_64_bits():
    found = score.as_numbers(torch.tensor([[1.5]], dtype=torch.bfloat16))
    assert (found.dtype, found.tolist()) == (np.float64, [[1.5]])
