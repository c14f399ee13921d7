"""Gradient boosted trees over histograms in numpy, for a comparison where scikit-learn is not installed.

Settings are those of scikit-learn's HistGradientBoosting (as of Ke et al., LightGBM, 2017), but for 64 bins a column in
place of 255, which take half the time: trees grow best split first to 31 leaves of at least 20 rows, categories are
ordered by their gradients. Rows to forecast are led down each tree as it grows, so no tree is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Floats

BINS = 64
LEAVES, ROWS_OF_A_LEAF = 31, 20
LEAST_HESSIAN, LEAST_GAIN = 1e-3, 1e-7
SMOOTH = 10.0  # added to the hessian of a category where categories are ordered: rare ones stand in the middle
RATE, FASTEST, USUAL_ROUNDS = 0.1, 0.3, 100  # fewer rounds than usual take larger steps

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Binned:
    """Rows as numbers of bins, (rows, columns), training rows first.

    flat: of training rows alone, with a range of its own for each column, as `np.bincount` takes them.
    coded: which columns are categories, (columns,). width: bins of the column that has most.
    """

    bins: NDArray[np.uint8]
    flat: Rows
    coded: NDArray[np.bool_]
    width: int


@dataclass(frozen=True, kw_only=True)
class Split:
    """The best split of a node: gain of the loss, and which bins of a column go to the left, (width,)."""

    gain: float
    column: int
    left: NDArray[np.bool_]


@dataclass(kw_only=True)
class Node:
    """Rows of a node, those of training apart, with their histograms: gradient, hessian, count (3, columns, width)."""

    train: Rows
    others: Rows
    sums: Floats
    split: Split | None = None


def binned(train: NDArray[np.floating], others: NDArray[np.floating], coded: Sequence[bool]) -> Binned:
    """Return the bins of all rows; borders are halves between different values of the training rows, or percentiles.

    Args:
        train: training rows, (rows, columns), without NaN.
        others: rows to forecast, (rows, columns).
        coded: which columns are categories, by numbers from 0 to 255, (columns,).
    """
    bins = np.empty((len(train) + len(others), train.shape[1]), np.uint8)
    for place, is_code in enumerate(coded):
        values = np.concatenate([train[:, place], others[:, place]])
        bins[:, place] = values if is_code else np.searchsorted(_borders(train[:, place]), values)
    width = int(bins.max(initial=0)) + 1
    flat = bins[: len(train)].astype(np.int64) + width * np.arange(train.shape[1])
    return Binned(bins=bins, flat=flat, coded=np.array(coded, np.bool_), width=width)


def _borders(values: NDArray[np.floating]) -> Floats:
    different = np.unique(values).astype(np.float64)
    if len(different) <= BINS:
        return (different[1:] + different[:-1]) / 2
    return np.unique(np.percentile(values, np.linspace(0, 100, BINS + 1)[1:-1], method="midpoint"))


def boosted(rows: Binned, target: Floats, classes: int, rounds: int) -> Floats:
    """Return forecasts of the rows behind the training rows: (rows,) of a number, or probabilities (rows, classes).

    Args:
        rows: all rows.
        target: of the training rows, numbers or places of classes, (rows,).
        classes: how many there are; 0 for a number.
        rounds: each makes a tree, and one for each class where there are three or more.
    """
    known, rate = len(target), min(FASTEST, RATE * max(1.0, USUAL_ROUNDS / rounds))
    scores = np.repeat(_first(target, classes)[np.newaxis], len(rows.bins), axis=0)  # (rows, outputs)
    hit = (target[:, np.newaxis] == (np.arange(classes) if classes > 2 else [1])).astype(np.float64)
    for _ in range(rounds):
        if classes:
            chance = probabilities_of(scores[:known])
            gradient, hessian = chance - hit, chance * (1 - chance)
        else:
            gradient, hessian = scores[:known] - target[:, np.newaxis], None
        for output in range(scores.shape[1]):
            add_tree(
                rows, scores[:, output], gradient[:, output], None if hessian is None else hessian[:, output], rate
            )
    if not classes:
        return np.ascontiguousarray(scores[known:, 0])
    found = probabilities_of(scores[known:])
    return found if classes > 2 else np.column_stack([1 - found, found])


def _first(target: Floats, classes: int) -> Floats:
    if not classes:
        return np.array([target.mean()])
    share = np.clip(np.bincount(target.astype(np.int64), minlength=classes) / len(target), 1e-12, 1 - 1e-12)
    return np.log(share) if classes > 2 else np.log(share[1:] / share[:1])


def probabilities_of(scores: Floats) -> Floats:
    """Return those of the second class from one column of scores, or of all classes from several, (rows, columns)."""
    if scores.shape[1] == 1:
        return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float64)


def add_tree(rows: Binned, scores: Floats, gradient: Floats, hessian: Floats | None, rate: float) -> None:
    """Grow a tree on the training rows, best split first, and add its leaves to the scores of all rows, (rows,).

    Args:
        rows: all rows.
        scores: changed in place.
        gradient: of the loss by the score of each training row, (rows,).
        hessian: the second derivative, (rows,); None where it is 1.
        rate: share of each leaf's best step that is taken.
    """
    known, every = len(gradient), np.arange(len(scores))
    root = Node(train=every[:known], others=every[known:], sums=_sums(rows, every[:known], gradient, hessian))
    root.split = best_split(rows, root.sums)
    leaves = [root]
    while len(leaves) < LEAVES:
        chosen = max(leaves, key=lambda leaf: leaf.split.gain if leaf.split else 0.0)
        if chosen.split is None:
            break
        leaves = [leaf for leaf in leaves if leaf is not chosen] + _children(rows, chosen, gradient, hessian)
    for leaf in leaves:
        whole = leaf.sums[:, 0].sum(axis=1)
        step = -rate * whole[0] / max(whole[1], LEAST_HESSIAN)
        scores[leaf.train] += step
        scores[leaf.others] += step


def _sums(rows: Binned, train: Rows, gradient: Floats, hessian: Floats | None) -> Floats:
    columns = rows.flat.shape[1]
    flat, size = rows.flat[train].ravel(), rows.width * columns
    count = np.bincount(flat, minlength=size).astype(np.float64)
    found = [
        np.bincount(flat, np.repeat(values[train], columns), size)
        for values in (gradient, hessian)
        if values is not None
    ]
    three = np.stack([found[0], found[-1] if hessian is not None else count, count])
    return np.asarray(three.reshape(3, columns, rows.width), np.float64)


def _children(rows: Binned, node: Node, gradient: Floats, hessian: Floats | None) -> list[Node]:
    """Return both halves of a node: of the smaller one the histograms are made, those of the other are what is left."""
    split = node.split
    assert split is not None
    lefts = [split.left[rows.bins[each, split.column]] for each in (node.train, node.others)]
    halves = [[each[side if left else ~side] for each, side in zip((node.train, node.others), lefts, strict=True)]
              for left in (True, False)]  # fmt: skip
    small = int(len(halves[1][0]) < len(halves[0][0]))
    sums = _sums(rows, halves[small][0], gradient, hessian)
    found = [Node(train=halves[small][0], others=halves[small][1], sums=sums),
             Node(train=halves[1 - small][0], others=halves[1 - small][1], sums=node.sums - sums)]  # fmt: skip
    for child in found:
        child.split = best_split(rows, child.sums) if len(child.train) >= 2 * ROWS_OF_A_LEAF else None
    return found


def best_split(rows: Binned, sums: Floats) -> Split | None:
    """Return the split with the largest gain, None where no split leaves enough rows in both halves.

    Args:
        rows: which columns are categories.
        sums: histograms of a node, (3, columns, width).
    """
    order = np.broadcast_to(np.arange(rows.width), sums.shape[1:])
    if rows.coded.any():
        share = np.where(sums[2] > 0, sums[0] / (sums[1] + SMOOTH), 0.0)
        order = np.where(rows.coded[:, np.newaxis], np.argsort(share, axis=1, kind="stable"), order)
        sums = np.take_along_axis(sums, order[np.newaxis], axis=2)
    left = np.cumsum(sums, axis=2)[:, :, :-1]
    whole = sums.sum(axis=2)[:, :, np.newaxis]
    right = whole - left
    allowed = (np.minimum(left[2], right[2]) >= ROWS_OF_A_LEAF) & (np.minimum(left[1], right[1]) >= LEAST_HESSIAN)
    if not allowed.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(allowed, left[0] ** 2 / left[1] + right[0] ** 2 / right[1] - whole[0] ** 2 / whole[1], -np.inf)
    column, place = divmod(int(gain.argmax()), gain.shape[1])
    if gain[column, place] <= LEAST_GAIN:
        return None
    chosen = np.zeros(rows.width, np.bool_)
    chosen[order[column, : place + 1]] = True
    return Split(gain=float(gain[column, place]), column=column, left=chosen)
