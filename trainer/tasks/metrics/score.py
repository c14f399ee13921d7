"""The figures of a model on a part of its task, whatever the task is."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.tasks.metrics.classification import CLASS_BASELINES, class_score, probabilities
from trainer.tasks.metrics.regression import BASELINES, score
from trainer.tasks.prepared import Task


def baselines_of(task: Task) -> dict[str, str]:
    """Return the forecasts that the model is compared with, by name, as text."""
    if task.labels:
        return CLASS_BASELINES
    return BASELINES if task.horizon else {name: words for name, words in BASELINES.items() if name != "persistence"}


def score_of(task: Task, part: Dataset, outputs: Floats) -> dict[str, Any]:
    """Return the figures of a network's raw outputs (rows, outputs) on `part`.

    Args:
        outputs: raw outputs of the network, shape (rows, outputs).
    """
    if task.labels:
        return class_score(task.split.train, part, probabilities(outputs))
    return score(task.split.train, part, task.targets.unscale(outputs[:, 0]), codes_apart(task))


def codes_apart(task: Task) -> list[int]:
    """Return how many values each coded column has, by its place; 0 for a number. A linear fit takes codes apart."""
    values = {each["column"]: each["values"] for each in task.embeddings}
    return [values.get(place, 0) for place in range(len(task.features))]


def as_numbers(outputs: Any) -> Floats:
    """Return a tensor (rows, outputs) as float64."""
    return np.asarray(outputs.double().cpu().numpy())
