"""How good probabilities of classes are: right answers, log loss, calibration, against forecasts that cost nothing."""

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
        "log_loss": log_loss(target, chances),
        "calibration_error": calibration_error(calibration(target, chances)),
        "accuracy_of_majority": float((target == counts.argmax()).mean()),
        "log_loss_of_prior": log_loss(target, prior),
    }
