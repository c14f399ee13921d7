"""Boosted trees in numpy: splits by brute force, and figures of scikit-learn on bundled sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.fixtures.later import imported_later
from trainer.tasks.metrics import boosted_trees
from trainer.tasks.metrics.boosted_trees import BINS, ROWS_OF_A_LEAF, best_split, binned, boosted, probabilities_of

sklearn = imported_later("sklearn", "scikit-learn is for tests alone")
Array = NDArray[np.float64]


def node(seed: int, rows: int, coded: bool) -> tuple[Any, Array, NDArray[np.uint8], Array, Array]:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, size=(rows, 2)).astype(np.float64)
    gradient, hessian = rng.normal(size=rows), rng.uniform(0.1, 1, size=rows)
    made = binned(values, values[:0], [coded, False])
    return made, boosted_trees._sums(made, np.arange(rows), gradient, hessian), made.bins, gradient, hessian


def gain_of(left: NDArray[np.bool_], gradient: Array, hessian: Array) -> float:
    def score(rows: NDArray[np.bool_]) -> float:
        return float(gradient[rows].sum() ** 2 / hessian[rows].sum())

    return score(left) + score(~left) - score(np.ones_like(left))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 150), coded=st.booleans())
def test_best_split_is_that_of_all_borders(seed: int, rows: int, coded: bool) -> None:
    made, sums, bins, gradient, hessian = node(seed, rows, coded)
    gains = []
    for column in (0, 1):
        present = np.unique(bins[:, column])
        orders = [present]
        if coded and column == 0:
            share = {b: gradient[bins[:, 0] == b].sum() / (hessian[bins[:, 0] == b].sum() + 10) for b in present}
            orders = [np.array(sorted(present, key=share.__getitem__))]
        for order, cut in itertools.product(orders, range(1, len(present))):
            left = np.isin(bins[:, column], order[:cut])
            if ROWS_OF_A_LEAF <= left.sum() <= rows - ROWS_OF_A_LEAF:
                gains.append(gain_of(left, gradient, hessian))
    found = best_split(made, sums)
    if found is None:
        assert max(gains, default=0.0) <= 1e-7
        return
    assert found.gain == pytest.approx(max(gains))
    assert found.gain == pytest.approx(gain_of(found.left[bins[:, found.column]], gradient, hessian))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), classes=st.sampled_from([0, 2, 3]), coded=st.booleans())
def test_forecasts_of_training_rows_depend_on_order_and_scale_of_columns_alone(
    seed: int, classes: int, coded: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, 9, 120), rng.normal(size=120)])
    target = np.floor(values[:, 0] / 3) if classes == 3 else (values[:, 1] > 0) * 1.0 if classes else values.sum(axis=1)
    found = boosted(binned(values, values, [coded, False]), target, classes, 5)
    again = boosted(binned(values, values[::-1], [coded, False]), target, classes, 5)
    np.testing.assert_array_equal(found[::-1], again)
    scaled = values * [1, 1000.0] + [0, 7]
    np.testing.assert_allclose(boosted(binned(scaled, scaled, [coded, False]), target, classes, 5), found)
    if classes:
        assert found.shape == (120, classes) and np.allclose(found.sum(axis=1), 1)
    else:
        assert found.mean() == pytest.approx(target.mean())  # a leaf moves its rows to their mean
        assert ((found - target) ** 2).mean() <= target.var()


def test_categories_are_split_by_what_they_stand_for_and_not_by_their_numbers() -> None:
    codes = np.arange(300.0)[:, np.newaxis] % 10
    gains = []
    for coded in (True, False):
        made = binned(codes, codes[:0], [coded])
        found = best_split(made, boosted_trees._sums(made, np.arange(300), codes[:, 0] % 2 - 0.5, None))
        assert found is not None
        gains.append(found.gain)
        assert (found.left.tolist() in ([False, True] * 5, [True, False] * 5)) == coded
    assert gains == pytest.approx([75, 75 / 9])


def test_bins_are_at_most_64_of_numbers_and_every_code() -> None:
    values = np.column_stack([np.linspace(0, 1, 5000), np.arange(5000) % 256])
    made = binned(values[:4000], values[4000:], [False, True])
    assert (made.bins[:, 0].max(), made.bins[:, 1].max(), made.width) == (BINS - 1, 255, 256)
    assert np.ptp(np.bincount(made.bins[:4000, 0])) <= 1
    assert made.flat.shape == (4000, 2) and made.flat[:, 1].min() == 256


def test_column_without_borders_and_few_rows_give_the_mean() -> None:
    values = np.ones((10, 1))
    np.testing.assert_allclose(boosted(binned(values, values[:3], [False]), np.arange(10.0), 0, 3), 4.5)
    values = np.arange(2.0 * ROWS_OF_A_LEAF - 1)[:, np.newaxis]
    np.testing.assert_allclose(boosted(binned(values, values, [False]), values[:, 0], 0, 3), values.mean())


def test_score_of_any_size_is_a_probability() -> None:
    assert probabilities_of(np.array([[-1e9], [0.0], [1e9]])).ravel().tolist() == pytest.approx([0, 0.5, 1])
    assert probabilities_of(np.array([[1e9, 0.0, -1e9]])).tolist() == [[1, 0, 0]]


def bundled() -> Iterator[tuple[str, Array, Array, int]]:
    from sklearn import datasets
    from statsmodels import datasets as more

    for name in ("iris", "wine", "breast_cancer", "diabetes"):
        values, target = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, values, target.astype(np.float64), 0 if name == "diabetes" else len(np.unique(target))
    for name, column, classes in (
        ("star98", "NABOVE", 0),
        ("engel", "foodexp", 0),
        ("anes96", "vote", 2),
        ("modechoice", "choice", 2),
    ):
        frame = getattr(more, name).load_pandas().data.dropna()
        yield name, frame.drop(columns=[column]).to_numpy(np.float64), frame[column].to_numpy(np.float64), classes


@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", "diabetes", "star98", "engel", "anes96", "modechoice"]
)
def test_figures_on_bundled_sets_are_those_of_scikit_learn(name: str) -> None:
    from sklearn import ensemble, metrics
    from threadpoolctl import threadpool_limits

    values, target, classes = next((v, t, c) for found, v, t, c in bundled() if found == name)
    figures: dict[str, list[float]] = {"theirs": [], "ours": []}
    order = np.random.default_rng(0).permutation(len(target))
    for fold in range(3):
        train, test = order[np.arange(len(order)) % 3 != fold], order[fold::3]
        kind = ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
        with threadpool_limits(1):
            model = kind(random_state=0).fit(values[train], target[train])
        ours = boosted(binned(values[train], values[test], [False] * values.shape[1]), target[train], classes, 100)
        for whose, answer in (("theirs", model.predict(values[test])), ("ours", ours)):
            if classes:
                chosen = answer if whose == "theirs" else answer.argmax(axis=1)
                figures[whose].append(float((chosen == target[test]).mean()))
            else:
                figures[whose].append(float(metrics.r2_score(target[test], answer)))
    error = 2 * np.sqrt(np.mean(figures["theirs"]) * (1 - np.mean(figures["theirs"])) / len(target)) if classes else 0.0
    assert np.mean(figures["ours"]) >= np.mean(figures["theirs"]) - max(np.std(figures["theirs"], ddof=1), error)
