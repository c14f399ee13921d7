"""Simpler models on the rows of a network: logistic regression, and boosted trees, of scikit-learn where it is there.

Each has a fixed amount of work, counted in numbers and trees and not by a clock: the same on every machine for the same
data. Figures may differ by the rounding of BLAS, which L-BFGS and splits of trees carry on. A fit is for the comparison
alone: whatever goes wrong in one, the trained network stays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import chunks
from trainer.tasks.metrics.boosted_trees import BINS, binned, boosted
from trainer.tasks.metrics.classification import probabilities
from trainer.tasks.prepared import Task

# These fix the work. The seconds of a tree, a column and a number are settings without a record of a measurement. With
# them one thread of an AMD EPYC took at most 1.3 CPU seconds for logistic regression and 2.8 for trees on SYNTHETIC
# rows, 7.7 seconds by the clock of that busy machine (2026-11-23, `python -m benchmarks.simple_models`).
LOGISTIC_NUMBERS, LOGISTIC_PASSES, PENALTY = 5_000_000, 100, 1.0
TREE_NUMBERS, MOST_ROUNDS = 3_000_000, 100
LEAST_ROWS = 1000  # a model of fewer rows than there are would be none to compare with
MOST_CATEGORIES = 255  # of a column, in scikit-learn's trees and ours
MOST_FORECASTS = 500_000  # rows that trees in numpy take 40 ms each for


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds that trees may take; those of a tree, of each of its columns, rows and numbers; and the fewest rounds."""

    seconds: float
    of_a_tree: float
    of_a_column: float
    of_a_row: float
    of_a_number: float
    least_rounds: int


SKLEARN = Cost(seconds=3.0, of_a_tree=2e-3, of_a_column=5e-5, of_a_row=0.0, of_a_number=15e-9, least_rounds=10)
# A column's is that at 64 bins. Measured from 600 rows of 5 columns, 1.1 ms of processor time a tree, to 300,000 of 10
# and 2,000 of 1,000, 98 and 73 ms (SYNTHETIC rows, AMD EPYC, 2026-11-29)
NUMPY = Cost(seconds=0.8, of_a_tree=15e-4, of_a_column=4e-5, of_a_row=175e-9, of_a_number=10e-9, least_rounds=20)
OF_A_CLASS = 0.15  # seconds that trees in numpy take where there are many, up to scikit-learn's


class AbsentError(Exception):
    """A simpler model would need more work than a comparison may take; the text gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Results of a simpler model by part: forecasts (rows,) in the target's unit, or probabilities (rows, classes).

    how: its name and settings as text. name: where it has another than such a model usually has; "" for the usual one.
    rows: of the training part, that it was fitted to.
    """

    how: str
    name: str = ""
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
    """Return histogram gradient boosting: scikit-learn's, or that of `boosted_trees` where it is not installed.

    Raises:
        AbsentError: where enough trees and rows would take too long.
        ValueError: where scikit-learn refuses the rows.
    """
    try:
        from sklearn import ensemble
    except ModuleNotFoundError:
        return numpy_trees(task, parts)
    kind = ensemble.HistGradientBoostingClassifier if task.labels else ensemble.HistGradientBoostingRegressor
    return sklearn_trees(kind, task, parts)


def coded_columns(task: Task) -> list[bool]:
    """Return which columns are categories to trees: those of few enough values."""
    return [0 < values <= MOST_CATEGORIES for values in codes_apart(task)]


def sklearn_trees(kind: Callable[..., Any], task: Task, parts: dict[str, Dataset]) -> Fitted:
    """Return scikit-learn's trees with its defaults, but for at most so many rounds.

    Args:
        kind: class of the model.
        parts: rows to forecast, by name.
    """
    from threadpoolctl import threadpool_limits

    most, rounds = work_of(len(task.split.train), len(task.features), len(task.labels or ()), SKLEARN)
    train = some_rows(task.split.train, most)
    categories = coded_columns(task)
    model = kind(random_state=0, max_iter=rounds, categorical_features=categories if any(categories) else None)
    # one thread: more would wait for each other on a busy machine far longer than they gain
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.features, train.target)
        answers = {name: _answers(task, model, part.features) for name, part in parts.items()}
    how = f"scikit-learn's {type(model).__name__}, at most {rounds} rounds"
    return Fitted(how=how, rows=len(train), answers=answers)


def numpy_trees(task: Task, parts: dict[str, Dataset]) -> Fitted:
    """Return trees of `boosted_trees`, as `trees` does."""
    forecasts = sum(map(len, parts.values()))
    if forecasts > MOST_FORECASTS:
        raise AbsentError(f"scikit-learn is not installed, and without it {forecasts:,} forecasts take too long")
    train = some_rows(task.split.train, TREE_NUMBERS // len(task.features))
    others = np.concatenate([part.features for part in parts.values()])
    rows = binned(train.features, others, coded_columns(task))
    seconds = min(SKLEARN.seconds, max(NUMPY.seconds, OF_A_CLASS * len(task.labels or ())))
    cost = replace(NUMPY, seconds=seconds, of_a_column=NUMPY.of_a_column * rows.width / BINS)
    most, rounds = work_of(len(train), len(task.features), len(task.labels or ()), cost)
    if most < len(train):
        train = some_rows(train, most)
        rows = binned(train.features, others, coded_columns(task))
    found = boosted(rows, train.target, len(task.labels or ()), rounds)
    ends = np.cumsum([len(part) for part in parts.values()])[:-1]
    how = f"histogram gradient boosting in numpy, {rounds} rounds; scikit-learn is not installed"
    answers = dict(zip(parts, np.split(found, ends), strict=True))
    return Fitted(how=how, name="boosted trees in numpy", rows=len(train), answers=answers)


def work_of(rows: int, width: int, classes: int, cost: Cost) -> tuple[int, int]:
    """Return rows and rounds of trees that take about `cost.seconds`; a round has a tree for each of 3 or more classes.

    Args:
        rows: number of rows there are.
        width: number of columns.
        classes: number of classes, 0 for a number.
    """
    outputs, base = (classes if classes > 2 else 1), cost.of_a_tree + cost.of_a_column * width
    of_a_row = cost.of_a_row + cost.of_a_number * width
    affordable = int((cost.seconds / (outputs * cost.least_rounds) - base) / of_a_row)
    used = max(0, min(rows, TREE_NUMBERS // width, affordable))
    return used, min(MOST_ROUNDS, int(cost.seconds / (outputs * (base + of_a_row * used))))


def _answers(task: Task, model: Any, features: NDArray[Any]) -> Floats:
    """Return forecasts, or probabilities of all classes: those that no training row has get 0."""
    if not task.labels:
        return np.asarray(model.predict(features), dtype=np.float64)
    chances = np.zeros((len(features), len(task.labels)))
    chances[:, model.classes_.astype(np.int64)] = model.predict_proba(features)
    return chances
