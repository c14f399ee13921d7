"""Features from the session so far that need no profile: balance, VWAP, clock, ranges."""

from __future__ import annotations

import numpy as np

from trainer.data.bar import Floats
from trainer.data.conventions import SessionConventions
from trainer.data.profiles.rolling import ratio
from trainer.data.profiles.session_blocks import Block
from trainer.data.profiles.session_grid import Grid
from trainer.data.sessions import session_minutes
from trainer.data.ticks import in_ticks

BALANCE = 3600  # seconds of the initial balance
SLOPE = 30  # bars


def session_features(block: Block, grid: Grid, sessions: SessionConventions, tick: float) -> dict[str, Floats]:
    """Return the features of the groups balance, VWAP and clock, and the ranges so far, each (bars,).

    Args:
        tick: price step in currency.
    """
    return {
        **balance(block, grid, tick),
        **vwap(block, grid, tick),
        **ranges(block, grid),
        **clock(block, sessions),
    }


def balance(block: Block, grid: Grid, tick: float) -> dict[str, Floats]:
    """Return distances to the first hour's extremes; while the hour lasts, to those so far.

    Args:
        tick: price step in currency.
    """
    bars, atr = block.bars, block.atr[block.session]
    within = block.second <= BALANCE
    close = in_ticks(bars.close, tick)
    high = grid.running(np.where(within, in_ticks(bars.high, tick), -np.inf), np.maximum)
    low = grid.running(np.where(within, in_ticks(bars.low, tick), np.inf), np.minimum)
    late = np.isinf(high)  # the session's first bar came after its first hour
    high, low = np.where(late, close, high), np.where(late, close, low)
    return {
        "ib_high_dist": (close - high) / atr,
        "ib_low_dist": (close - low) / atr,
        "ib_range_ratio": (high - low) / atr,
    }


def vwap(block: Block, grid: Grid, tick: float) -> dict[str, Floats]:
    """Return distances to the volume-weighted mean price; without volume so far, every bar weighs the same.

    Prices count in ticks from the first typical price that was traded: where no other was, all differences are
    exactly zero, and so is the deviation.

    Args:
        tick: price step in currency.
    """
    atr = block.atr[block.session]
    close, high, low = (in_ticks(getattr(block.bars, name), tick) for name in ("close", "high", "low"))
    thrice = high + low + close  # whole ticks, which a third of them are not
    volume = block.bars.volume
    origin = thrice[grid.first_above_zero(volume)]
    mean, variance = spread_so_far(grid, (thrice - origin) / 3, volume)
    untraded = grid.running(volume, np.add) == 0
    if untraded.any():
        alike = spread_so_far(grid, (thrice - grid.first(thrice)) / 3, np.ones_like(volume))
        mean, variance = np.where(untraded, alike[0], mean), np.where(untraded, alike[1], variance)
    away, centre = close - origin / 3 - mean, origin / 3 + mean
    return {
        "vwap_dist": away / atr,
        "vwap_band_z": ratio(away, np.sqrt(variance), 0.0),
        "vwap_slope_30": (centre - grid.earlier(centre, SLOPE)) / atr,
    }


def spread_so_far(grid: Grid, price: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean and variance of `price` (bars,) so far in its session; 0 while nothing weighs.

    A bar adds weight * (price - mean before) * (price - mean after), never below zero, to the sum of squares:
    West, Communications of the ACM 22 (1979) 532. The mean of squares less the square of the mean would cancel.

    Args:
        price: shape (bars,).
        weight: weight of each bar, at least 0, shape (bars,).
    """
    mass = grid.running(weight, np.add)
    mean = ratio(grid.running(weight * price, np.add), mass, 0.0)
    before = np.where(grid.column == 0, price, np.concatenate([mean[:1], mean[:-1]]))
    squares = np.where(mass == weight, 0.0, np.maximum(weight * (price - before) * (price - mean), 0.0))
    return mean, ratio(grid.running(squares, np.add), mass, 0.0)


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
    """Return the time of the bar's close in the session; a half day's early end is in its schedule."""
    angle = 2 * np.pi * block.second / (60 * sessions.minutes)
    scheduled = session_minutes(block.day, sessions)[block.session]
    return {
        "tod_sin": np.sin(angle),
        "tod_cos": np.cos(angle),
        "minutes_to_close": np.maximum(0.0, scheduled - block.second / 60),
    }
