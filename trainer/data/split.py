"""Split rows by time, and scale them by what the training part alone shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import chunks
from trainer.runtime.errors import TrainerError

TRAIN, VALIDATION = 0.70, 0.15  # shares of the rows; the rest is test
FURTHEST = 1e18  # standard deviations from the training mean whose square 32 bits still hold
FEWEST = 10  # rows of a part below which a score says nothing


@dataclass(frozen=True, kw_only=True)
class Split:
    """Three parts in time order; `embargo` rows are dropped before validation and before test."""

    train: Dataset
    validation: Dataset
    test: Dataset
    embargo: int


def split_by_time(rows: Dataset, embargo: int) -> Split:
    """Split `rows`; an `embargo` of at least the target's horizon keeps targets out of later parts.

    Raises:
        TrainerError: RM517 where a part would have fewer than FEWEST rows, RM518 for a constant target.
    """
    first = round(len(rows) * TRAIN)
    second = first + round(len(rows) * VALIDATION)
    parts = (
        rows[: max(0, first - embargo)],
        rows[first : max(first, second - embargo)],
        rows[second:],
    )
    if min(map(len, parts)) < FEWEST:
        sizes = " / ".join(str(len(part)) for part in parts)
        raise TrainerError(
            "RM517",
            what=f"{len(rows)} usable rows split into {sizes} for train / validation / test",
            why=f"each part needs {FEWEST} rows after an embargo of {embargo}",
        )
    if np.ptp(parts[0].target) == 0:
        raise TrainerError("RM518", what=f"all {len(parts[0])} training targets are {parts[0].target[0]:.6g}")
    return Split(train=parts[0], validation=parts[1], test=parts[2], embargo=embargo)


@dataclass(frozen=True, kw_only=True)
class Scaler:
    """Mean and standard deviation per column; scaled = (value - mean) / std."""

    mean: Floats
    std: Floats

    @classmethod
    def fit(cls, values: NDArray[np.floating[Any]]) -> Scaler:
        """Fit to `values`, shape (rows,) or (rows, columns); a column that never changes is only centred."""
        rows = [values[piece] for piece in chunks(len(values))]
        mean = np.asarray(sum(each.sum(axis=0, dtype=np.float64) for each in rows) / len(values))
        squares = sum(np.square(each - mean).sum(axis=0) for each in rows)
        std = np.sqrt(squares / len(values))
        return cls(mean=mean, std=np.where(std < 1e-12, 1.0, std))

    @classmethod
    def identity(cls) -> Scaler:
        """Return the scaler of one column that leaves values as they are."""
        return cls(mean=np.array(0.0), std=np.array(1.0))

    def scale(self, values: NDArray[np.floating[Any]]) -> Floats:
        """Return `values` in standard deviations from the mean."""
        return (values - self.mean) / self.std

    def unscale(self, values: NDArray[np.floating[Any]]) -> Floats:
        """Return scaled `values` in their own unit again."""
        return values * self.std + self.mean
