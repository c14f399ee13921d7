"""Features from the profile of the session so far: levels, shape and nodes. They need no other session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.bar import Floats
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.developing import developing_levels
from trainer.data.profiles.finished import Finished, finished_profiles
from trainer.data.profiles.moments import shape
from trainer.data.profiles.profile import BarRows, Levels, bar_rows, level
from trainer.data.profiles.rolling import ratio
from trainer.data.profiles.session_blocks import Block
from trainer.data.profiles.session_grid import Grid
from trainer.data.profiles.value_area import Integers
from trainer.data.profiles.volume_nodes import Nodes, node_height, session_nodes
from trainer.data.ticks import whole_ticks

DRIFT = 30  # bars


@dataclass(frozen=True, kw_only=True)
class SessionProfiles:
    """The profiles of a block: each bar's levels so far, its nodes, and each session's finished profile."""

    rows: BarRows
    levels: Levels
    nodes: Nodes
    finished: list[Finished]


@dataclass(frozen=True, kw_only=True)
class FinishedSessions:
    """What later sessions need of a block's profiles: levels in rows, (sessions,), and the profiles themselves."""

    poc: Integers
    high: Integers
    low: Integers
    profiles: list[Finished]


def finished_sessions(block: Block, profiles: SessionProfiles) -> FinishedSessions:
    """Return the levels at each session's last bar, with the finished profiles."""
    last = block.starts + block.counts - 1
    levels = profiles.levels
    return FinishedSessions(
        poc=levels.poc[last], high=levels.high[last], low=levels.low[last], profiles=profiles.finished
    )


def session_profiles(block: Block, conventions: ProfileConventions) -> SessionProfiles:
    """Grow the profiles of all sessions of a block, once, for everything that is read from them."""
    bars = block.bars
    rows = bar_rows(bars.low, bars.high, bars.close, bars.volume, conventions)
    close = whole_ticks(bars.close, conventions.tick)
    height = node_height(block.atr, conventions)
    levels = developing_levels(rows, block.starts, conventions)
    nodes = session_nodes(rows, block.starts, close, height, conventions)
    return SessionProfiles(rows=rows, levels=levels, nodes=nodes, finished=finished_profiles(rows, block.starts))


def profile_features(
    block: Block, grid: Grid, profiles: SessionProfiles, conventions: ProfileConventions
) -> dict[str, Floats]:
    """Return the features of the groups session profile, shape and nodes, each of shape (bars,)."""
    close, atr = whole_ticks(block.bars.close, conventions.tick), block.atr[block.session]
    levels, nodes = profiles.levels, profiles.nodes
    poc, high = level(levels.poc, "poc", conventions), level(levels.high, "high", conventions)
    low = level(levels.low, "low", conventions)
    skew, kurtosis = shape(grid, profiles.rows)
    return {
        "dpoc_dist": (close - poc) / atr,
        "dvah_dist": (close - high) / atr,
        "dval_dist": (close - low) / atr,
        "dva_width": (high - low) / atr,
        "in_value": side(close, high, low),
        "dpoc_drift_30": (poc - grid.earlier(poc, DRIFT)) / atr,
        "profile_skew": skew,
        "profile_kurtosis": kurtosis,
        "poc_volume_share": ratio(levels.peak.astype(np.float64), levels.total.astype(np.float64), 0.0),
        "hvn_count": np.where(np.isnan(atr), np.nan, nodes.count),
        "nearest_hvn_dist": nodes.nearest_high / atr,
        "nearest_lvn_dist": np.where(nodes.low_above <= nodes.low_below, -nodes.low_above, nodes.low_below) / atr,
        "lvn_above_dist": nodes.low_above / atr,
        "lvn_below_dist": nodes.low_below / atr,
    }


def side(close: Floats, high: Floats, low: Floats) -> Floats:
    """Return -1 below `low`, 1 above `high`, 0 between; NaN where there is no band.

    Args:
        close: prices, shape (bars,).
        high: upper end of the band in the same unit, shape (bars,).
        low: lower end of the band in the same unit, shape (bars,).
    """
    found = (close > high).astype(np.float64) - (close < low)
    return np.where(np.isnan(high + low), np.nan, found)
