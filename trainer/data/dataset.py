"""Rows to learn from: features at a bar's close, and the volatility of the bars that follow it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.bars import Bars, Dates, Floats
from trainer.data.features import feature_matrix, realised

TARGET = "realised_next"
FORMULA = "ln sqrt(mean over t+1..t+horizon of ln(close / previous close)^2)"
UNIT = "ln of volatility per bar"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Rows in time order; none has a gap.

    Shapes: `date` (rows,), `features` (rows, features), `target` (rows,), `persistence` (rows,): the
    target's own statistic over the last `horizon` bars, as a forecast that claims nothing will change.
    """

    date: Dates
    features: Floats
    target: Floats
    persistence: Floats

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, rows: slice) -> Dataset:
        return Dataset(**{name: array[rows] for name, array in vars(self).items()})


def make_dataset(bars: Bars, horizon: int) -> Dataset:
    """Return the rows whose features and whose target, `horizon` bars ahead, are both known."""
    features, past = feature_matrix(bars), realised(bars, horizon)
    target = np.concatenate([past[horizon:], np.full(min(horizon, len(past)), np.nan)])
    known = np.isfinite(features).all(axis=1) & np.isfinite(target) & np.isfinite(past)
    return Dataset(date=bars.date[known], features=features[known], target=target[known], persistence=past[known])
