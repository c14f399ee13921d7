"""Rows of a table to training, validation and test: by time, or at random from a seed, class by class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.split import FEWEST, TRAIN, VALIDATION
from trainer.runtime.errors import TrainerError

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Row numbers of each part, and in `how` by what rule they were chosen."""

    train: Rows
    validation: Rows
    test: Rows
    how: dict[str, object]


def by_time(order: Rows, embargo: int) -> Parts:
    """Split rows that stand in `order` of time; `embargo` rows are dropped before validation and before test."""
    first = round(len(order) * TRAIN)
    second = first + round(len(order) * VALIDATION)
    return _enough(
        Parts(
            train=order[: max(0, first - embargo)],
            validation=order[first : max(first, second - embargo)],
            test=order[second:],
            how={"by": "time", "seed": None, "stratified": False},
        )
    )


def at_random(rows: Rows, classes: NDArray[np.int64] | None, seed: int) -> Parts:
    """Split `rows` in an order drawn from `seed`; with `classes` (of these rows) each class in the same shares.

    Args:
        classes: class of each row of the table as a number from 0; None to split without regard to classes.
        seed: seeds the order of the rows; the same seed gives the same parts.

    Raises:
        TrainerError: RM517 for too few rows, RM583 for a class with fewer than three.
    """
    rng = np.random.default_rng(seed)
    groups = [rows] if classes is None else [rows[classes == each] for each in np.unique(classes)]
    pieces: list[list[Rows]] = [[], [], []]
    for group in groups:
        for piece, chosen in zip(pieces, _shares(rng.permutation(group), stratified=classes is not None), strict=True):
            piece.append(chosen)
    train, validation, test = (np.sort(np.concatenate(piece)) for piece in pieces)
    how: dict[str, object] = {"by": "seed", "seed": seed, "stratified": classes is not None}
    return _enough(Parts(train=train, validation=validation, test=test, how=how))


def _shares(shuffled: Rows, *, stratified: bool) -> list[Rows]:
    if stratified and len(shuffled) < 3:
        what = f"a class has {len(shuffled)} rows, and each of the three parts needs one"
        raise TrainerError("RM583", what=what)
    held_out = max(1, round(len(shuffled) * VALIDATION))
    first = len(shuffled) - 2 * held_out
    return np.split(shuffled, [first, first + held_out])


def _enough(parts: Parts) -> Parts:
    sizes = [len(parts.train), len(parts.validation), len(parts.test)]
    if min(sizes) < FEWEST:
        shown = " / ".join(map(str, sizes))
        what = f"{sum(sizes)} usable rows split into {shown} for train / validation / test"
        least = math.ceil((FEWEST - 0.5) / VALIDATION)  # shares are rounded
        advice = f"Give at least {least} rows with a target; --data-fraction 1 uses all of them."
        raise TrainerError("RM517", what=what, why=f"each part needs {FEWEST} rows", next=advice)
    return parts
