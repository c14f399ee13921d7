"""The figures of a model on a part of its task, whatever the task is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.tasks.metrics.classification import CLASS_BASELINES, class_score, confusion, probabilities
from trainer.tasks.metrics.intervals import accuracy_interval, r2_interval
from trainer.tasks.metrics.regression import BASELINES, forecasts_by_part, score
from trainer.tasks.metrics.simple_models import codes_apart
from trainer.tasks.prepared import Task


def baselines_of(task: Task) -> dict[str, str]:
    """Return the forecasts that the model is compared with, by name, as text."""
    if task.labels:
        return CLASS_BASELINES
    return BASELINES if task.horizon else {name: words for name, words in BASELINES.items() if name != "persistence"}


def baselines_by_part(task: Task, parts: Mapping[str, Dataset]) -> dict[str, dict[str, Floats]]:
    """Return the baselines' forecasts (rows,) of a number for each part, by part and baseline; for classes none.

    Args:
        parts: rows to forecast, by name. One fit to the training part serves all.
    """
    if task.labels:
        return {name: {} for name in parts}
    return forecasts_by_part(task.split.train, parts, codes_apart(task))


def score_of(task: Task, part: Dataset, outputs: Floats, against: Mapping[str, Floats]) -> dict[str, Any]:
    """Return the figures of a network's raw outputs (rows, outputs) on `part`.

    Args:
        outputs: raw outputs of the network, shape (rows, outputs).
        against: the part's forecasts of `baselines_by_part`.
    """
    if task.labels:
        figures: dict[str, Any] = class_score(task.split.train, part, probabilities(outputs))
        return figures | ({} if task.horizon else accuracy_interval((outputs.argmax(axis=1) == part.target) * 1.0))
    forecast = task.targets.unscale(outputs[:, 0])
    figures = score(part, forecast, against)
    return figures | ({} if task.horizon else _r2_intervals(part, forecast, against, figures))


def _r2_intervals(
    part: Dataset, forecast: Floats, against: Mapping[str, Floats], figures: Mapping[str, Any]
) -> dict[str, float]:
    """Return the intervals of R² against each baseline that is not exact."""
    found: dict[str, float] = {}
    for name, values in against.items():
        if figures[f"r2_vs_{name}"] is not None:
            found |= r2_interval(name, (part.target - forecast) ** 2, (part.target - values) ** 2)
    return found


def confusions_of(task: Task, parts: Mapping[str, tuple[Dataset, Floats]]) -> dict[str, Any]:
    """Return, for classes, how many rows of each class got each answer, by part; nothing for a number."""
    if not task.labels:
        return {}
    count = len(task.labels)
    return {
        name: confusion(part.target.astype(np.int64), outputs.argmax(axis=1), count).tolist()
        for name, (part, outputs) in parts.items()
    }


def as_numbers(outputs: Any) -> Floats:
    """Return a tensor (rows, outputs) as float64."""
    return np.asarray(outputs.double().cpu().numpy())
