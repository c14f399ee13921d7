"""Features from the session so far that need no profile: balance, VWAP, clock, ranges."""

from __future__ import annotations

import numpy as np

from trainer.data.bar import Floats
from trainer.data.conventions import SessionConventions
from trainer.data.profiles.rolling import ratio
from trainer.data.profiles.session_blocks import Block
from trainer.data.profiles.session_grid import Grid
from trainer.data.sessions import session_minutes

BALANCE = 3600  # seconds of the initial balance
SLOPE = 30  # bars


def session_features(block: Block, grid: Grid, sessions: SessionConventions, tick: float) -> dict[str, Floats]:
    """Return the features of the groups balance, VWAP and clock, and the ranges so far, each (bars,)."""
    return {
        **balance(block, grid, tick),
        **vwap(block, grid, tick),
        **ranges(block, grid),
        **clock(block, sessions),
    }


def balance(block: Block, grid: Grid, tick: float) -> dict[str, Floats]:
    """Return distances to the first hour's extremes; while the hour lasts, to those so far."""
    bars, atr = block.bars, block.atr[block.session]
    within = block.second <= BALANCE
    high = grid.running(np.where(within, bars.high, -np.inf), np.maximum)
    low = grid.running(np.where(within, bars.low, np.inf), np.minimum)
    late = np.isinf(high)  # the session's first bar came after its first hour
    high, low = np.where(late, bars.close, high), np.where(late, bars.close, low)
    return {
        "ib_high_dist": (bars.close - high) / tick / atr,
        "ib_low_dist": (bars.close - low) / tick / atr,
        "ib_range_ratio": (high - low) / tick / atr,
    }


def vwap(block: Block, grid: Grid, tick: float) -> dict[str, Floats]:
    """Return distances to the volume-weighted mean price; without volume so far, every bar weighs the same.

    Prices count from the session's first open, so that squares stay small.
    """
    bars, atr = block.bars, block.atr[block.session]
    origin = grid.first(bars.open)
    price = (bars.high + bars.low + bars.close) / 3 - origin
    traded = grid.running(bars.volume, np.add)
    weight = np.where(traded > 0, bars.volume, 1.0)
    mass = grid.running(weight, np.add)
    mean = grid.running(weight * price, np.add) / mass
    variance = grid.running(weight * price * price, np.add) / mass - mean * mean
    deviation = np.sqrt(np.where(variance < (1e-6 * tick) ** 2, 0.0, variance))
    away = bars.close - origin - mean
    return {
        "vwap_dist": away / tick / atr,
        "vwap_band_z": ratio(away, deviation, 0.0),
        "vwap_slope_30": (mean - grid.earlier(mean, SLOPE)) / tick / atr,
    }


def ranges(block: Block, grid: Grid) -> dict[str, Floats]:
    """Return the session's range so far, of the price and, where there is one, of the VIX."""
    bars = block.bars
    high, low = grid.running(bars.high, np.maximum), grid.running(bars.low, np.minimum)
    found = {"range_pct_session": 100 * (high - low) / grid.first(bars.open)}
    if bars.vix_close is not None:
        high, low = grid.running(bars.vix_close, np.maximum), grid.running(bars.vix_close, np.minimum)
        found["vix_intraday_range"] = (high - low) / grid.first(bars.vix_close)
    return found


def clock(block: Block, sessions: SessionConventions) -> dict[str, Floats]:
    """Return where the bar's close lies in the session; a half day's early end is in its schedule."""
    angle = 2 * np.pi * block.second / (60 * sessions.minutes)
    scheduled = session_minutes(block.day, sessions)[block.session]
    return {
        "tod_sin": np.sin(angle),
        "tod_cos": np.cos(angle),
        "minutes_to_close": np.maximum(0.0, scheduled - block.second / 60),
    }
