"""Features from the profile of the session so far: levels, shape and nodes. They need no other session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.bar import Floats
from trainer.data.conventions import VOLUME_BITS, ProfileConventions
from trainer.data.profiles.developing import Tile, developing_levels
from trainer.data.profiles.profile import PAD, BarRows, Levels, bar_rows, row_centre
from trainer.data.profiles.rolling import ratio
from trainer.data.profiles.session_blocks import Block
from trainer.data.profiles.session_grid import Grid
from trainer.data.profiles.value_area import Integers
from trainer.data.profiles.volume_nodes import Nodes, node_height, nodes_of_tile

DRIFT = 30  # bars


@dataclass(frozen=True, kw_only=True)
class SessionProfiles:
    """The profiles of a block: each bar's levels so far, its nodes, and each session's finished profile.

    finished: per session the lowest row and the volume of each row, in units.
    """

    rows: BarRows
    levels: Levels
    nodes: Nodes
    finished: list[tuple[int, Integers]]


@dataclass(frozen=True, kw_only=True)
class FinishedSessions:
    """What later sessions need of a block's profiles: levels in rows, (sessions,), and the profiles themselves."""

    poc: Integers
    high: Integers
    low: Integers
    profiles: list[tuple[int, Integers]]


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
    close = bars.close / conventions.tick
    height = node_height(block.atr, conventions)
    walk = _Walk(close=close, starts=block.starts, height=height, conventions=conventions)
    levels = developing_levels(rows, block.starts, conventions, walk.see)
    return SessionProfiles(rows=rows, levels=levels, nodes=Nodes.joined(walk.nodes), finished=walk.finished)


@dataclass(kw_only=True)
class _Walk:
    """Sees every tile of a block in order, and reads nodes and finished profiles from it."""

    close: Floats
    starts: Integers
    height: Integers
    conventions: ProfileConventions

    def __post_init__(self) -> None:
        self.bar, self.nodes, self.finished = 0, list[Nodes](), list[tuple[int, Integers]]()
        self.ends = np.append(self.starts[1:], len(self.close))

    def see(self, tile: Tile) -> None:
        session = len(self.finished)
        part = slice(self.bar, self.bar + len(tile.table))
        self.nodes.append(nodes_of_tile(tile, self.close[part], int(self.height[session]), self.conventions))
        self.bar = part.stop
        if self.bar == self.ends[session]:
            self.finished.append((tile.first, tile.table[-1, PAD:-PAD].copy()))


def profile_features(
    block: Block, grid: Grid, profiles: SessionProfiles, conventions: ProfileConventions
) -> dict[str, Floats]:
    """Return the features of the groups session profile, shape and nodes, each of shape (bars,)."""
    close, atr = block.bars.close / conventions.tick, block.atr[block.session]
    levels, nodes = profiles.levels, profiles.nodes
    poc, high, low = (row_centre(rows, conventions) for rows in (levels.poc, levels.high, levels.low))
    skew, kurtosis = shape(block, grid, profiles.rows)
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
        "hvn_count": nodes.count,
        "nearest_hvn_dist": nodes.nearest_high / atr,
        "nearest_lvn_dist": np.where(nodes.low_above <= nodes.low_below, -nodes.low_above, nodes.low_below) / atr,
        "lvn_above_dist": nodes.low_above / atr,
        "lvn_below_dist": nodes.low_below / atr,
    }


def side(close: Floats, high: Floats, low: Floats) -> Floats:
    """Return -1 below `low`, 1 above `high`, 0 between; NaN where there is no band."""
    found = (close > high).astype(np.float64) - (close < low)
    return np.where(np.isnan(high + low), np.nan, found)


def shape(block: Block, grid: Grid, rows: BarRows) -> tuple[Floats, Floats]:
    """Return skewness and excess kurtosis of price under the profile so far.

    Sums of powers of the row over a bar's rows have closed forms, so no profile is needed. Rows count from
    the session's first bar, which keeps the powers small.
    """
    origin = np.repeat(rows.low[block.starts], block.counts)
    low, high = (rows.low - origin).astype(np.float64), (rows.high - origin).astype(np.float64)
    share = rows.share * 2.0**-VOLUME_BITS
    mass, one, two, three, four = (
        grid.running(share * (_power_sum(high, k) - _power_sum(low - 1, k)), np.add) for k in range(5)
    )
    safe = np.where(mass == 0, 1.0, mass)
    m1, m2, m3, m4 = (moment / safe for moment in (one, two, three, four))
    variance = m2 - m1 * m1
    flat = variance < 1e-9  # rows squared: one row alone, apart from rounding
    deviation = np.sqrt(np.where(flat, 1.0, variance))
    third = m3 - 3 * m1 * m2 + 2 * m1**3
    fourth = m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1**4
    return np.where(flat, 0.0, third / deviation**3), np.where(flat, 0.0, fourth / deviation**4 - 3)


def _power_sum(n: Floats, power: int) -> Floats:
    """Return the sum of i^power for i = 1..n, Faulhaber's polynomial, which differences also take below zero."""
    if power == 0:
        return n
    if power == 1:
        return n * (n + 1) / 2
    if power == 2:
        return n * (n + 1) * (2 * n + 1) / 6
    if power == 3:
        return (n * (n + 1) / 2) ** 2
    return n * (n + 1) * (2 * n + 1) * (3 * n * n + 3 * n - 1) / 30
