"""Features of a day, each from that bar and earlier ones only: a model may know them at the bar's close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainer.data.bar import Bars, Floats

VOLATILITY_FLOOR = 1e-6  # per bar; keeps the logarithm finite where the price stood still
PARKINSON = 4 * np.log(2)  # range² to variance under Brownian motion: Parkinson, J. Business 53 (1980) 61


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One column of the model's input; `lookback` is how many bars before the current one it needs."""

    name: str
    formula: str
    unit: str
    lookback: int
    compute: Callable[[Bars], Floats]
    needs_vix: bool = False


def features_for(bars: Bars) -> tuple[Feature, ...]:
    """Return the features these bars have; without a VIX the ones that need it are left out."""
    return tuple(feature for feature in FEATURES if bars.vix_close is not None or not feature.needs_vix)


def feature_matrix(bars: Bars) -> Floats:
    """Return all features, shape (bars, features), NaN in the rows that have not enough bars before them."""
    return np.stack([feature.compute(bars) for feature in features_for(bars)], axis=1)


def _vix(bars: Bars) -> Floats:
    assert bars.vix_close is not None  # features_for leaves these features out otherwise
    return bars.vix_close


def log_return(price: Floats, bars: int = 1) -> Floats:
    """Return ln(price / price `bars` earlier), shape (bars,), NaN in the first `bars` rows."""
    return np.concatenate([np.full(min(bars, len(price)), np.nan), np.log(price[bars:] / price[:-bars])])


def rolling(values: Floats, window: int, statistic: Callable[..., Floats] = np.mean) -> Floats:
    """Return `statistic` over the current and the `window` - 1 earlier values, NaN before there are enough.

    Each window is reduced by itself: a running sum would carry rounding from bar to bar.

    Args:
        values: shape (rows,).
        window: number of values in a window.
        statistic: reduces an array along `axis`, as numpy's functions do.
    """
    if len(values) < window:
        return np.full(len(values), np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(values, window)  # (bars - window + 1, window)
    return np.concatenate([np.full(window - 1, np.nan), statistic(windows, axis=-1)])


def log_volatility(variance: Floats) -> Floats:
    """Return ln of the square root of a variance per bar, not below ln VOLATILITY_FLOOR."""
    return 0.5 * np.log(np.maximum(variance, VOLATILITY_FLOOR**2))


def realised(bars: Bars, window: int) -> Floats:
    """Return ln of the realised volatility of the last `window` bars: root of the mean squared log return."""
    return log_volatility(rolling(log_return(bars.close) ** 2, window))


def parkinson(bars: Bars, window: int) -> Floats:
    """Return ln of the volatility that the high-low ranges of the last `window` bars imply."""
    return log_volatility(rolling(np.log(bars.high / bars.low) ** 2 / PARKINSON, window))


def downside(bars: Bars, window: int) -> Floats:
    """Return the share of falling bars in the variance of the last `window` bars; 0.5 where nothing moved."""
    returns = log_return(bars.close)
    falling, all_ = rolling(np.minimum(returns, 0) ** 2, window), rolling(returns**2, window)
    return np.where(all_ == 0, 0.5, falling / np.where(all_ == 0, 1, all_))


FEATURES = (
    Feature(
        name="return_1",
        formula="ln(close[t] / close[t-1])",
        unit="log return",
        lookback=1,
        compute=lambda bars: log_return(bars.close),
    ),
    Feature(
        name="return_5",
        formula="ln(close[t] / close[t-5])",
        unit="log return",
        lookback=5,
        compute=lambda bars: log_return(bars.close, 5),
    ),
    Feature(
        name="range_1",
        formula="ln sqrt(ln(high[t] / low[t])^2 / (4 ln 2))",
        unit="ln of volatility per bar",
        lookback=0,
        compute=lambda bars: parkinson(bars, 1),
    ),
    Feature(
        name="range_5",
        formula="ln sqrt(mean over t-4..t of ln(high / low)^2 / (4 ln 2))",
        unit="ln of volatility per bar",
        lookback=4,
        compute=lambda bars: parkinson(bars, 5),
    ),
    Feature(
        name="realised_5",
        formula="ln sqrt(mean over t-4..t of return_1^2)",
        unit="ln of volatility per bar",
        lookback=5,
        compute=lambda bars: realised(bars, 5),
    ),
    Feature(
        name="realised_20",
        formula="ln sqrt(mean over t-19..t of return_1^2)",
        unit="ln of volatility per bar",
        lookback=20,
        compute=lambda bars: realised(bars, 20),
    ),
    Feature(
        name="downside_20",
        formula="sum over t-19..t of min(return_1, 0)^2 / sum of return_1^2",
        unit="share, 0 to 1",
        lookback=20,
        compute=lambda bars: downside(bars, 20),
    ),
    Feature(
        name="drawdown_60",
        formula="ln(close[t] / max of close over t-59..t)",
        unit="log return, 0 or less",
        lookback=59,
        compute=lambda bars: np.log(bars.close / rolling(bars.close, 60, np.max)),
    ),
    Feature(
        name="volume_20",
        formula="ln((1 + volume[t]) / (1 + mean of volume over t-19..t))",
        unit="log ratio",
        lookback=19,
        compute=lambda bars: np.log((1 + bars.volume) / (1 + rolling(bars.volume, 20))),
    ),
    Feature(
        name="vix",
        formula="ln(vix_close[t])",
        unit="ln of VIX points",
        lookback=0,
        needs_vix=True,
        compute=lambda bars: np.log(_vix(bars)),
    ),
    Feature(
        name="vix_change_1",
        formula="ln(vix_close[t] / vix_close[t-1])",
        unit="log ratio",
        lookback=1,
        needs_vix=True,
        compute=lambda bars: log_return(_vix(bars)),
    ),
    Feature(
        name="vix_20",
        formula="ln(vix_close[t] / mean of vix_close over t-19..t)",
        unit="log ratio",
        lookback=19,
        needs_vix=True,
        compute=lambda bars: np.log(_vix(bars) / rolling(_vix(bars), 20)),
    ),
)
