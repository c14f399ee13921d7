"""Features over the last bars, across session bounds: returns, volatility, volume and the VIX."""

from __future__ import annotations

import numpy as np

from trainer.data.bar import Floats
from trainer.data.profiles.rolling import correlation, lagged, ratio, window_mean, window_sum, z_score
from trainer.data.profiles.session_blocks import HALO, Block
from trainer.data.ticks import in_ticks

PARKINSON = 4 * np.log(2)  # range² to variance under Brownian motion: Parkinson, J. Business 53 (1980) 61


def bar_features(block: Block, tick: float) -> dict[str, Floats]:
    """Return the features of moving windows, each of shape (bars,), NaN before there are enough bars."""
    close = block.with_past("close")
    change = log_change(close, 1)
    found = {
        **{f"ret_{bars}": log_change(close, bars) for bars in (1, 5, 15, 30, 60)},
        **volatility(block, close, change, tick),
        **volume(block, tick),
    }
    if block.bars.vix_close is not None:
        found |= vix(block, change)
    return {name: values[HALO:] for name, values in found.items()}


def log_change(values: Floats, bars: int) -> Floats:
    """Return ln(value / value `bars` earlier)."""
    return np.log(values / lagged(values, bars))


def volatility(block: Block, close: Floats, change: Floats, tick: float) -> dict[str, Floats]:
    """Return average true range and volatilities, with the HALO in front.

    Args:
        close: closing prices in currency, shape (bars,).
        change: differences of `close` to the bar before, shape (bars,).
        tick: price step in currency.
    """
    high, low = block.with_past("high"), block.with_past("low")
    top, bottom, previous = in_ticks(high, tick), in_ticks(low, tick), lagged(in_ticks(close, tick), 1)
    true_range = np.maximum(top, previous) - np.minimum(bottom, previous)
    squared_range = np.log(high / low) ** 2 / PARKINSON
    return {
        "atr_14": window_mean(true_range, 14),
        "realized_vol_30": np.sqrt(window_mean(change * change, 30)),
        "realized_vol_120": np.sqrt(window_mean(change * change, 120)),
        "parkinson_30": np.sqrt(window_mean(squared_range, 30)),
    }


def volume(block: Block, tick: float) -> dict[str, Floats]:
    """Return how much was traded and on which side, with the HALO in front."""
    traded = block.with_past("volume")
    close, high, low = (in_ticks(block.with_past(name), tick) for name in ("close", "high", "low"))
    location = ratio((close - low) - (high - close), high - low, 0.0)
    return {
        "vol_z_20": z_score(traded, 20),
        "up_down_vol_30": ratio(
            window_sum(np.sign(close - lagged(close, 1)) * traded, 30), window_sum(traded, 30), 0.0
        ),
        "bar_delta_proxy": location * ratio(traded, window_mean(traded, 20), 0.0),
    }


def vix(block: Block, change: Floats) -> dict[str, Floats]:
    """Return how the VIX moved, and whether against the price, with the HALO in front."""
    level = block.with_past("vix_close")
    return {
        "vix_ret_5": log_change(level, 5),
        "vix_ret_30": log_change(level, 30),
        "es_vix_corr_60": correlation(change, log_change(level, 1), 60),
    }
