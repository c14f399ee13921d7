"""How good a forecast is: its error, and its R² against forecasts that cost next to nothing."""

from __future__ import annotations

import numpy as np

from trainer.data.bars import Floats
from trainer.data.dataset import Dataset

BASELINES = {
    "mean": "the mean of the training targets, always",
    "persistence": "the target's own statistic over the last horizon bars",
    "linear": "least squares on the same features, fitted to the training part",
}


def baseline_forecasts(train: Dataset, part: Dataset) -> dict[str, Floats]:
    """Return each baseline's forecast for `part`, shape (rows,); only `train` is fitted to."""
    weights, *_ = np.linalg.lstsq(_design(train), train.target, rcond=None)
    return {
        "mean": np.full(len(part), train.target.mean()),
        "persistence": part.persistence,
        "linear": _design(part) @ weights,
    }


def rmse(target: Floats, forecast: Floats) -> float:
    """Return the root of the mean squared error, in the target's unit."""
    return float(np.sqrt(np.mean((target - forecast) ** 2)))


def r2(target: Floats, forecast: Floats, baseline: Floats) -> float | None:
    """Return 1 - the squared error of `forecast` / that of `baseline`; None where the baseline is exact.

    1 is a perfect forecast, 0 one as good as the baseline, below 0 a worse one.
    """
    error, base = rmse(target, forecast), rmse(target, baseline)
    return 1 - (error / base) ** 2 if base > 0 else None


def score(train: Dataset, part: Dataset, forecast: Floats) -> dict[str, float | None]:
    """Return the figures of `forecast` on `part`: rows, rmse, r2_vs_<baseline> for each baseline."""
    against = baseline_forecasts(train, part)
    return {
        "rows": len(part),
        "rmse": rmse(part.target, forecast),
        **{f"r2_vs_{name}": r2(part.target, forecast, values) for name, values in against.items()},
    }


def _design(rows: Dataset) -> Floats:
    return np.column_stack([np.ones(len(rows)), rows.features])  # (rows, 1 + features)
