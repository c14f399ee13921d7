"""Simpler models on the rows of a network: logistic regression, and boosted trees where scikit-learn is installed.

Each has a fixed amount of work, counted in numbers and trees and not by a clock: the same on every machine for the same
data. Figures may differ by the rounding of BLAS, which L-BFGS and splits of trees carry on. A fit is for the comparison
alone: whatever goes wrong in one, the trained network stays.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import chunks
from trainer.tasks.metrics.classification import probabilities
from trainer.tasks.prepared import Task

# These fix the work. The seconds of a tree, a column and a number are settings without a record of a measurement. With
# them one thread of an AMD EPYC took at most 1.3 CPU seconds for logistic regression and 2.8 for trees on SYNTHETIC
# rows, 7.7 seconds by the clock of that busy machine (2026-11-23, `python -m benchmarks.simple_models`).
LOGISTIC_NUMBERS, LOGISTIC_PASSES, PENALTY = 5_000_000, 100, 1.0
TREE_NUMBERS, TREE_SECONDS, OF_A_TREE, OF_A_COLUMN, OF_A_NUMBER = 3_000_000, 3.0, 2e-3, 5e-5, 15e-9
LEAST_ROUNDS, MOST_ROUNDS = 10, 100
LEAST_ROWS = 1000  # a model of fewer rows than there are would be none to compare with
MOST_CATEGORIES = 255  # of a column, in scikit-learn's trees
NOT_INSTALLED = "scikit-learn is not installed in the Python that trained"


class AbsentError(Exception):
    """A simpler model would need more work than a comparison may take; the text gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Results of a simpler model by part: forecasts (rows,) in the target's unit, or probabilities (rows, classes).

    how: its name and settings as text. rows: of the training part, that it was fitted to.
    """

    how: str
    rows: int
    answers: dict[str, Floats]


def some_rows(train: Dataset, most: int) -> Dataset:
    """Return at most so many rows, evenly spaced over all. Raises AbsentError where that is too few to compare with.

    Args:
        most: number of rows.
    """
    if len(train) <= most:
        return train
    if most < LEAST_ROWS:
        raise AbsentError(f"{len(train):,} rows take more than a few seconds, and {most:,} are too few to compare with")
    places = np.linspace(0, len(train) - 1, most).astype(np.int64)
    return Dataset(**{name: array[places] for name, array in vars(train).items()})


def codes_apart(task: Task) -> list[int]:
    """Return how many values each coded column has, by its place; 0 for a number. A linear fit takes codes apart."""
    values = {each["column"]: each["values"] for each in task.embeddings}
    return [values.get(place, 0) for place in range(len(task.features))]


def logistic(task: Task, parts: dict[str, Dataset]) -> Fitted:
    """Return multinomial logistic regression with an L2 penalty of 1, as scikit-learn has it, on scaled inputs.

    A code has one weight a value and class. Minimises the sum of the cross entropy + |weights|² / 2 by L-BFGS.
    """
    classes, codes = len(task.labels or ()), codes_apart(task)
    train = some_rows(task.split.train, LOGISTIC_NUMBERS // (len(codes) * classes))
    model = _Logistic(codes, classes)
    model.fit(*_split_inputs(task, train, codes), torch.from_numpy(train.target.astype(np.int64)))
    answers = {name: np.concatenate([model.chances(*_split_inputs(task, part[piece], codes))
                                     for piece in chunks(len(part))]) for name, part in parts.items()}  # fmt: skip
    return Fitted(how="logistic regression, L2 penalty 1", rows=len(train), answers=answers)


def _split_inputs(task: Task, rows: Dataset, codes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scaled numbers (rows, numbers) and the codes (rows, coded columns)."""
    plain = [place for place, values in enumerate(codes) if not values]
    coded = [place for place, values in enumerate(codes) if values]
    scaled = task.inputs.scale(rows.features)[:, plain]
    return torch.from_numpy(np.ascontiguousarray(scaled)), torch.from_numpy(rows.features[:, coded].astype(np.int64))


class _Logistic:
    """Weights in 64 bits: of the numbers, of each value of each code, and a bias without penalty.

    Of two classes the first has the score 0, as in scikit-learn: with weights of its own the penalty would count half.
    """

    def __init__(self, codes: Sequence[int], classes: int) -> None:
        self.two = classes == 2
        classes = 1 if self.two else classes
        shapes = [(sum(not values for values in codes), classes), *((v, classes) for v in codes if v), (classes,)]
        self.weights = [torch.zeros(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    def scores(self, numbers: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        found = numbers @ self.weights[0] + self.weights[-1]
        for place, table in enumerate(self.weights[1:-1]):
            found = found + table[codes[:, place]]
        return torch.cat([torch.zeros_like(found), found], dim=1) if self.two else found

    def chances(self, numbers: torch.Tensor, codes: torch.Tensor) -> Floats:
        with torch.no_grad():
            return probabilities(self.scores(numbers, codes).numpy())

    @torch.enable_grad()
    def fit(self, numbers: torch.Tensor, codes: torch.Tensor, target: torch.Tensor) -> None:
        search = torch.optim.LBFGS(
            self.weights, max_iter=LOGISTIC_PASSES, tolerance_grad=1e-5, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            search.zero_grad()
            entropy = torch.nn.functional.cross_entropy(self.scores(numbers, codes), target, reduction="sum")
            size = torch.stack([weight.square().sum() for weight in self.weights[:-1]]).sum()
            value = (entropy + PENALTY * size / 2) / len(target)
            value.backward()
            return value

        search.step(loss)


def trees(task: Task, parts: dict[str, Dataset]) -> Fitted:
    """Return scikit-learn's histogram gradient boosting with its defaults, but for at most so many rounds.

    Raises:
        ModuleNotFoundError: where scikit-learn is not installed.
        AbsentError: where enough trees and rows would take too long.
        ValueError: where scikit-learn refuses the rows.
    """
    from sklearn import ensemble
    from threadpoolctl import threadpool_limits

    most, rounds = work_of(len(task.split.train), len(task.features), len(task.labels or ()))
    train = some_rows(task.split.train, most)
    kind = ensemble.HistGradientBoostingClassifier if task.labels else ensemble.HistGradientBoostingRegressor
    categories = [0 < values <= MOST_CATEGORIES for values in codes_apart(task)]
    model = kind(random_state=0, max_iter=rounds, categorical_features=categories if any(categories) else None)
    # one thread: more would wait for each other on a busy machine far longer than they gain
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.features, train.target)
        answers = {name: _answers(task, model, part.features) for name, part in parts.items()}
    how = f"scikit-learn's {kind.__name__}, at most {rounds} rounds"
    return Fitted(how=how, rows=len(train), answers=answers)


def work_of(rows: int, width: int, classes: int) -> tuple[int, int]:
    """Return rows and rounds of trees that take about TREE_SECONDS; a round has a tree for each of 3 or more classes.

    Args:
        rows: number of rows there are.
        width: number of columns.
        classes: number of classes, 0 for a number.
    """
    outputs, base = (classes if classes > 2 else 1), OF_A_TREE + OF_A_COLUMN * width
    affordable = int((TREE_SECONDS / (outputs * LEAST_ROUNDS) - base) / (OF_A_NUMBER * width))
    used = max(0, min(rows, TREE_NUMBERS // width, affordable))
    return used, min(MOST_ROUNDS, int(TREE_SECONDS / (outputs * (base + OF_A_NUMBER * used * width))))


def _answers(task: Task, model: Any, features: NDArray[Any]) -> Floats:
    """Return forecasts, or probabilities of all classes: those that no training row has get 0."""
    if not task.labels:
        return np.asarray(model.predict(features), dtype=np.float64)
    chances = np.zeros((len(features), len(task.labels)))
    chances[:, model.classes_.astype(np.int64)] = model.predict_proba(features)
    return chances
