"""The network next to simpler models: their figures on the same parts, and by how much the network is ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.tasks.metrics.classification import auc, log_loss, probabilities
from trainer.tasks.metrics.intervals import accuracy_interval, r2_interval, ratio_interval
from trainer.tasks.metrics.regression import BASELINES, r2, rmse
from trainer.tasks.metrics.simple_models import AbsentError, Fitted, logistic, trees
from trainer.tasks.prepared import Task

Answers = dict[str, tuple[Dataset, Floats]]
Forecasts = Mapping[str, Mapping[str, Floats]]
ON_REQUEST = "not fitted to bars unless asked for: --baselines trees"


def simpler_models(task: Task, outputs: Answers, against: Forecasts, requested: str) -> dict[str, dict[str, Any]]:
    """Return for each simpler model how it was made, its figures by part, and how far the network is ahead of it.

    A model that could not be fitted has `absent`, the reason, alone. `ahead` is the network's headline figure less the
    model's: share of right answers, or R² against the training mean. Rows of a table have 95 % intervals of both, by
    the bootstrap of the same rows for both models.

    Args:
        outputs: part and raw outputs of the network (rows, outputs), by name.
        against: forecasts of `score.baselines_by_part` for the same parts: the linear fit is one of them.
        requested: value of --baselines: auto, linear, trees.
    """
    parts = {name: part for name, (part, _) in outputs.items()}
    fits: dict[str, Callable[[], Fitted]] = {"linear": lambda: _linear(task, parts, against)}
    if requested != "linear":
        fits["trees"] = lambda: trees(task, parts)
    found: dict[str, dict[str, Any]] = {}
    for name, fit in fits.items():
        if name == "trees" and requested == "auto" and task.horizon:
            found[name] = {"absent": ON_REQUEST}
            continue
        try:
            found[name] = _compared(task, outputs, fit())
        except AbsentError as error:
            found[name] = {"absent": str(error)}
        except Exception as error:  # a comparison may not take the trained network with it
            found[name] = {"absent": f"{type(error).__name__}: {error}"[:200]}
    return found


def _compared(task: Task, outputs: Answers, fitted: Fitted) -> dict[str, Any]:
    by_part = {part: _figures(task, *outputs[part], fitted.answers[part]) for part in outputs}
    name = {"name": fitted.name} if fitted.name else {}
    return {"how": fitted.how, **name, "rows": fitted.rows, **by_part}


def _linear(task: Task, parts: dict[str, Dataset], against: Forecasts) -> Fitted:
    if task.labels:
        return logistic(task, parts)
    answers = {name: against[name]["linear"] for name in parts}
    return Fitted(how=BASELINES["linear"], rows=len(task.split.train), answers=answers)


def _figures(task: Task, part: Dataset, outputs: Floats, answers: Floats) -> dict[str, Any]:
    if task.labels:
        return _of_classes(task, part, probabilities(outputs), answers)
    mean = np.full(len(part), task.split.train.target.mean())
    forecast = task.targets.unscale(outputs[:, 0])
    explained = r2(part.target, answers, mean)
    figures = {"rmse": rmse(part.target, answers), "r2_vs_mean": explained}
    if explained is None:  # the mean is exact: there is nothing to explain
        return figures | {"ahead": None}
    own, other, spread = ((part.target - each) ** 2 for each in (forecast, answers, mean))
    figures["ahead"] = float((other.sum() - own.sum()) / spread.sum())
    return figures if task.horizon else figures | r2_interval("mean", other, spread) | _between(other - own, spread)


def _of_classes(task: Task, part: Dataset, own: Floats, other: Floats) -> dict[str, Any]:
    target = part.target.astype(np.int64)
    right, against = ((chances.argmax(axis=1) == target) * 1.0 for chances in (own, other))
    figures = {"accuracy": float(against.mean()), "log_loss": log_loss(target, other), "auc": auc(target, other)}
    figures["ahead"] = float((right - against).mean())
    if task.horizon:
        return figures
    return figures | accuracy_interval(against) | _between(right - against, np.ones_like(right))


def _between(above: Floats, below: Floats) -> dict[str, float]:
    low, high = ratio_interval(above, below)
    return {"ahead_low": low, "ahead_high": high}


NAMES = {"linear": "a linear fit", "logistic": "logistic regression", "trees": "boosted trees"}


def name_of(model: str, record: Mapping[str, Any], *, classes: bool) -> str:
    """Return what a simpler model is called.

    Args:
        model: linear or trees.
        record: what `simpler_models` returned for it.
        classes: whether the target is one of several classes.
    """
    if "name" in record:
        return str(record["name"])
    return NAMES["logistic" if model == "linear" and classes else model]


def verdict(figures: Mapping[str, Any]) -> str:
    """Return by how much the network is ahead of a model on a part, and whether that is more than chance."""
    ahead, low, high = (figures.get(name) for name in ("ahead", "ahead_low", "ahead_high"))
    if ahead is None:
        return "no difference to state"
    words = f"the network is {'ahead' if ahead >= 0 else 'behind'} by {abs(ahead):.3f}"
    if low is None or high is None:
        return words
    return f"{words} ({low:+.3f} to {high:+.3f}{': no clear difference' if low <= 0 <= high else ''})"
