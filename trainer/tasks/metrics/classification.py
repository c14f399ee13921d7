"""Metrics of class probabilities: accuracy, log loss, calibration, against forecasts that cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset

CLASS_BASELINES = {
    "majority": "the most frequent class of the training part, always",
    "prior": "the shares of the classes in the training part, always",
}
BINS = 10


def probabilities(scores: Floats) -> Floats:
    """Return the softmax of scores (rows, classes)."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def log_loss(target: NDArray[np.int64], chances: Floats) -> float:
    """Return the mean of -ln of the probability that the true class was given; at least 1e-15 is taken."""
    return float(-np.log(np.clip(chances[np.arange(len(target)), target], 1e-15, None)).mean())


def balanced_accuracy(target: NDArray[np.int64], answer: NDArray[np.int64]) -> float:
    """Return the mean over the classes that occur of their share of right answers."""
    return float(np.mean([(answer[target == each] == each).mean() for each in np.unique(target)]))


def confusion(target: NDArray[np.int64], answer: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return how many rows of each class (lines) got each answer (columns), (classes, classes).

    Args:
        target: true class of each row, 0 to classes - 1, (rows,).
        answer: class with the highest probability, likewise.
        classes: number of classes, those without a row included.
    """
    return np.bincount(target * classes + answer, minlength=classes * classes).reshape(classes, classes)


def macro_f1(counts: NDArray[np.int64]) -> float:
    """Return the mean of F1 = 2 * hits / (rows of the class + answers of it) over classes that occur in either."""
    hits, both = np.diag(counts), counts.sum(axis=0) + counts.sum(axis=1)
    return float(np.mean(2 * hits[both > 0] / both[both > 0]))


def auc(target: NDArray[np.int64], chances: Floats) -> float | None:
    """Return the area under the ROC curve: how often a row of a class gets it a higher chance than one of another.

    Ties count half (Mann and Whitney 1947). Of several classes the mean over those that occur, each against the rest;
    None where fewer than two occur.
    """
    found = np.unique(target)
    if len(found) < 2:
        return None
    chosen = found[1:] if chances.shape[1] == 2 else found
    return float(np.mean([_auc_of(target == each, chances[:, each]) for each in chosen]))


def _auc_of(inside: NDArray[np.bool_], chance: Floats) -> float:
    _, place, count = np.unique(chance, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # equal chances share the mean of their ranks
    own = int(inside.sum())
    return float((rank[inside].sum() - own * (own + 1) / 2) / (own * (len(inside) - own)))


def calibration(target: NDArray[np.int64], chances: Floats) -> list[dict[str, Any]]:
    """Return, for ten bins of the answer's probability, rows, mean probability and share of right answers."""
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == target
    places = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    return [
        {"rows": int(inside.sum()), "confidence": float(sure[inside].mean()), "accuracy": float(right[inside].mean())}
        for place in range(BINS)
        if (inside := places == place).any()
    ]


def calibration_error(bins: list[dict[str, Any]]) -> float:
    """Return the mean distance of probability and share of right answers, weighed by rows (ECE, Naeini 2015)."""
    rows = sum(each["rows"] for each in bins)
    return float(sum(each["rows"] * abs(each["confidence"] - each["accuracy"]) for each in bins) / rows)


def class_score(train: Dataset, part: Dataset, chances: Floats) -> dict[str, float | None]:
    """Return the figures of probabilities (rows, classes) on `part`, and those of the baselines.

    Args:
        chances: probabilities, shape (rows, classes).
    """
    target, answer = part.target.astype(np.int64), chances.argmax(axis=1)
    counts = np.bincount(train.target.astype(np.int64), minlength=chances.shape[1])
    prior = np.broadcast_to(counts / counts.sum(), chances.shape)
    return {
        "rows": len(part),
        "accuracy": float((answer == target).mean()),
        "balanced_accuracy": balanced_accuracy(target, answer),
        "macro_f1": macro_f1(confusion(target, answer, chances.shape[1])),
        "auc": auc(target, chances),
        "log_loss": log_loss(target, chances),
        "calibration_error": calibration_error(calibration(target, chances)),
        "accuracy_of_majority": float((target == counts.argmax()).mean()),
        "log_loss_of_prior": log_loss(target, prior),
    }
