"""Metrics of a forecast: its error, and its R² against forecasts that cost next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import chunks

Apart = Mapping[int, NDArray[np.int64]]

BASELINES = {
    "mean": "the mean of the training targets, always",
    "persistence": "the target's own statistic over the last horizon bars",
    "linear": "least squares on the same features, fitted to the training part; collinear ones share their weight, as "
    "do words beyond the 500 commonest of a column",
}
SPARE = 64  # roundings of the features' own format below which a direction is taken for none
APART = 500  # values of codes that a fit takes apart: the time grows with their square, to minutes and gigabytes
EXACT = 1e-10  # of the target's spread: a forecast this near differs by rounding alone


def forecasts_by_part(
    train: Dataset, parts: Mapping[str, Dataset], codes: Sequence[int] = ()
) -> dict[str, dict[str, Floats]]:
    """Return each baseline's forecasts for each part, by name, shape (rows,); only `train` is fitted to, once.

    Args:
        parts: what to forecast, by name.
        codes: number of values of each feature that is a code, else 0; a fit takes the values of a code apart.
    """
    apart = values_apart(train, codes)
    weights, mean = _least_squares(train, apart), train.target.mean()
    return {name: _forecasts(part, mean, weights, apart) for name, part in parts.items()}


def values_apart(train: Dataset, codes: Sequence[int]) -> Apart:
    """Return the values of each code that have a column of their own, by its place: of all codes the APART commonest.

    Args:
        codes: number of values of each feature that is a code, else 0.
    """
    coded = [place for place, values in enumerate(codes) if values]
    seen = [np.bincount(train.features[:, place].astype(np.int64), minlength=codes[place]) for place in coded]
    owner = np.repeat(coded, [len(counts) for counts in seen])
    value = np.concatenate([np.arange(len(counts)) for counts in seen]) if seen else owner
    kept = np.sort(np.argsort(-np.concatenate(seen), kind="stable")[:APART]) if seen else owner
    return {place: value[kept][owner[kept] == place] for place in coded}


def _forecasts(part: Dataset, mean: float, weights: Floats, apart: Apart) -> dict[str, Floats]:
    linear = [_design(part[piece], apart) @ weights for piece in chunks(len(part))]
    past = {} if np.isnan(part.persistence).all() else {"persistence": part.persistence}
    return {"mean": np.full(len(part), mean), **past, "linear": np.concatenate(linear)}


def rmse(target: Floats, forecast: Floats) -> float:
    """Return the root of the mean squared error, in the target's unit."""
    return float(np.sqrt(np.mean((target - forecast) ** 2)))


def r2(target: Floats, forecast: Floats, baseline: Floats) -> float | None:
    """Return 1 - the squared error of `forecast` / that of `baseline`; None where the baseline is exact.

    1 is a perfect forecast, 0 one as good as the baseline, below 0 a worse one. Exact is an error of rounding: far
    below what a network in 32 bits could distinguish.

    Args:
        target: true values, shape (rows,).
        forecast: shape (rows,).
        baseline: forecasts of the baseline, shape (rows,).
    """
    error, base = rmse(target, forecast), rmse(target, baseline)
    rounding = EXACT * float(target.std()) + np.finfo(np.float64).eps * float(np.abs(target).max())
    return 1 - (error / base) ** 2 if base > rounding else None


def score(part: Dataset, forecast: Floats, against: Mapping[str, Floats]) -> dict[str, float | None]:
    """Return the figures of `forecast` on `part`: rows, rmse, r2_vs_<baseline> for each baseline.

    Args:
        forecast: shape (rows,).
        against: forecasts of the baselines for the same part, (rows,) each, by name.
    """
    return {
        "rows": len(part),
        "rmse": rmse(part.target, forecast),
        **{f"r2_vs_{name}": r2(part.target, forecast, values) for name, values in against.items()},
    }


def _least_squares(rows: Dataset, apart: Apart) -> Floats:
    """Return the weights of the fit, in 64 bits; directions that differ only by rounding get none.

    The triangle of a QR decomposition holds all that the fit needs: behind the column of ones it is that of the
    centred columns, which are then scaled to one spread. Features are stored in 32 bits, so columns that are sums of
    others differ from them by that rounding: a direction below SPARE roundings of the largest is none.
    """
    triangle = _triangle(rows, apart)
    rounding = float(np.finfo(rows.features.dtype).eps) if rows.features.dtype.kind == "f" else 0.0
    moved = np.sqrt(np.square(triangle[1:, 1:-1]).sum(axis=0))  # spread * sqrt(rows) of each column
    about = np.abs(triangle[0, 1:-1])  # mean * sqrt(rows), likewise
    live = moved > SPARE * max(rounding, float(np.finfo(np.float64).eps)) * np.hypot(about, moved)
    scale = np.where(live, moved, 1.0)
    least = max(SPARE * rounding, np.finfo(np.float64).eps * max(len(rows), len(scale) + 1))
    inner, *_ = np.linalg.lstsq(np.where(live, triangle[1:, 1:-1] / scale, 0.0), triangle[1:, -1], rcond=least)
    slopes = np.where(live, inner / scale, 0.0)
    return np.concatenate([[(triangle[0, -1] - triangle[0, 1:-1] @ slopes) / triangle[0, 0]], slopes])


def _triangle(rows: Dataset, apart: Apart) -> Floats:
    """Return the triangle of [1, features, target]; each piece of rows is folded into that of those before."""
    triangle = np.empty((0, 0))
    for piece in chunks(len(rows)):
        design = np.column_stack([_design(rows[piece], apart), rows.target[piece]])
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle.reshape(-1, design.shape[1]), design]), mode="r"))
    return triangle


def _design(rows: Dataset, apart: Apart) -> Floats:
    plain = [place for place in range(rows.features.shape[1]) if place not in apart]
    flags = [rows.features[:, [place]] == values for place, values in apart.items()]
    return np.column_stack([np.ones(len(rows)), rows.features[:, plain], *flags])  # (rows, 1 + numbers + values)
