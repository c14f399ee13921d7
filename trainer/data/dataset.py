"""Rows to learn from: features at a bar's close, and what the bars that follow it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Dates, Floats
from trainer.data.features.daily_features import log_return, log_volatility, rolling
from trainer.data.loading.chunks import chunks


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is forecast, over `horizon` bars; `classes` is 0 for a number, else how many classes there are."""

    name: str
    formula: str
    unit: str
    classes: int = 0


TARGETS = {
    "volatility": Target(
        name="realised_next",
        formula="ln sqrt(mean over t+1..t+horizon of ln(close / previous close)^2)",
        unit="ln of volatility per bar",
    ),
    "return": Target(name="return_next", formula="ln(close[t+horizon] / close[t])", unit="log return"),
    "direction": Target(
        name="direction_next", formula="1 if close[t+horizon] > close[t], else 0", unit="class", classes=2
    ),
}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Rows in time order; none has a gap.

    Shapes: `date` (rows,), `features` (rows, features), `target` (rows,), `persistence` (rows,): the
    target's own statistic over the last `horizon` bars, as a forecast that claims nothing will change.
    """

    date: Dates
    features: NDArray[np.floating[Any]]
    target: Floats
    persistence: Floats

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, rows: slice) -> Dataset:
        return Dataset(**{name: array[rows] for name, array in vars(self).items()})


def rows_of(
    date: Dates, close: Floats, session: NDArray[np.int64], features: NDArray[Any], *, horizon: int, target: str
) -> Dataset:
    """Return the rows whose features and target are known; a target stays within the bar's session.

    Shapes: date, close and session (bars,), features (bars, columns).

    Args:
        date: time of each bar's close, shape (bars,).
        close: closing prices in currency, shape (bars,).
        session: number of the session of each bar, shape (bars,).
        features: shape (bars, columns); rows with NaN are left out.
        horizon: bars between a row and its target.
        target: name of the target, as `--target` takes it.
    """
    finite = np.isfinite(features).all(axis=1)
    return dataset_of(date, close, session, finite, lambda known: features[known], horizon=horizon, target=target)


def dataset_of(
    date: Dates,
    close: Floats,
    session: NDArray[np.int64],
    finite: NDArray[np.bool_],
    features: Callable[[NDArray[np.bool_]], NDArray[np.floating[Any]]],
    *,
    horizon: int,
    target: str,
) -> Dataset:
    """Return the rows that are `finite` (bars,) and whose target is known; `features` is asked for those of a mask.

    Args:
        date: time of each bar's close, shape (bars,).
        close: closing prices in currency, shape (bars,).
        session: number of the session of each bar, shape (bars,).
        finite: whether all features of a bar are known, shape (bars,).
        features: returns the features, shape (rows, columns), of the bars of a mask of shape (bars,).
        horizon: bars between a row and its target.
        target: name of the target, as `--target` takes it.
    """
    past = statistic_by_pieces(close, horizon, target)
    coming = np.concatenate([past[horizon:], np.full(min(horizon, len(past)), np.nan)])
    known = finite & np.isfinite(coming) & np.isfinite(past)
    known[:-horizon] &= session[horizon:] == session[:-horizon]
    return Dataset(date=date[known], features=features(known), target=coming[known], persistence=past[known])


def statistic_by_pieces(close: Floats, horizon: int, target: str) -> Floats:
    """Return the target's statistic without temporaries as long as the data; a piece looks `horizon` bars back.

    Args:
        close: closing prices in currency, shape (bars,).
        horizon: bars that the statistic looks back.
        target: name of the target, as `--target` takes it.
    """
    parts = []
    for piece in chunks(len(close)):
        back = min(piece.start, horizon)
        parts.append(statistic(close[piece.start - back : piece.stop], horizon, target)[back:])
    return np.concatenate(parts)


def statistic(close: Floats, horizon: int, target: str) -> Floats:
    """Return the target's statistic over the last `horizon` bars, shape (bars,), NaN where there are fewer.

    Args:
        close: closing prices in currency, shape (bars,).
        horizon: bars that the statistic looks back.
        target: name of the target, as `--target` takes it.
    """
    if target == "volatility":
        returns = log_return(close)
        return log_volatility(rolling(returns * returns, horizon))
    change = log_return(close, horizon)
    return change if target == "return" else np.where(np.isnan(change), np.nan, (change > 0).astype(np.float64))


def class_weights(target: Floats, how: str, classes: int = 2) -> list[float] | None:
    """Return the weight of each class, rows / (classes * rows of the class), or None where all weigh the same.

    Args:
        target: class of each row as a number from 0, shape (rows,).
        how: value of `--class-weights`.
        classes: number of classes; targets are 0 to classes - 1.
    """
    if how == "none":
        return None
    counts = np.bincount(target.astype(np.int64), minlength=classes)
    return [len(target) / (len(counts) * count) if count else 0.0 for count in counts.tolist()]
