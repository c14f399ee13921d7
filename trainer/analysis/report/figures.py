"""The figures of a run as a person reads them: by readable names, an interval in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = {
    "rmse": "root mean squared error",
    "r2_vs_mean": "R² against the training mean",
    "r2_vs_persistence": "R² against persistence",
    "r2_vs_linear": "R² against a linear fit",
    "accuracy": "right answers",
    "balanced_accuracy": "right answers, mean over the classes",
    "macro_f1": "F1, mean over the classes",
    "auc": "AUC",
    "accuracy_of_majority": "right answers of the most frequent class alone",
    "log_loss_of_prior": "log loss of the classes' shares alone",
}
LOW, HIGH = "_low", "_high"  # the ends of a figure's interval


def words_of(name: str) -> str:
    """Return a figure's name as people write it; one of a metric that is not known here has its own.

    Args:
        name: as metadata.json has it.
    """
    return WORDS.get(name, name.replace("_", " "))


def figure_rows(validation: Mapping[str, Any], test: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return a row a figure that is known, and a row an interval; "" where one part has none.

    Args:
        validation: figures by name, and `test` likewise.
    """
    found: list[tuple[str, Any, Any]] = []
    for name, value in validation.items():
        figure = name.removesuffix(LOW)
        if name.endswith(HIGH) and name.removesuffix(HIGH) + LOW in validation:
            continue
        if figure != name and figure + HIGH in validation:
            spans = span_of(validation, figure), span_of(test, figure)
            found.append((f"{words_of(figure)}, 95 % interval", *spans))
        elif value is not None:
            found.append((words_of(name), value, test.get(name)))
    return found


def span_of(figures: Mapping[str, Any], name: str) -> str:
    """Return a figure's interval, "" where there is none.

    Args:
        name: of the figure.
    """
    low, high = (figures.get(f"{name}{end}") for end in (LOW, HIGH))
    return "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
