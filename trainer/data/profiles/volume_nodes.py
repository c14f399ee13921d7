"""High and low volume nodes of the profile so far, in bins whose height follows the market's range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from trainer.data.bar import Floats
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.developing import Tile, session_tiles
from trainer.data.profiles.profile import MOST_ROWS, PAD, BarRows, in_bins, row_centre, to_rows
from trainer.data.profiles.value_area import Booleans, Integers

BINS = 24  # in an average true range of the session


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Nodes as seen from each close, shape (bars,), in ticks.

    count: of high nodes; nearest_high: close minus the nearest; low_above, low_below: how far, 0 or more
    but for the half bin between a close and its bin's centre.
    """

    count: Floats
    nearest_high: Floats
    low_above: Floats
    low_below: Floats

    @classmethod
    def joined(cls, parts: Sequence[Nodes]) -> Nodes:
        """Return `parts` one after the other."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})


def node_height(atr: Floats, conventions: ProfileConventions) -> Integers:
    """Return the height of a bin in rows, from the sessions before alone; where the range is unknown, one holds all."""
    rows = np.where(np.isnan(atr), MOST_ROWS, atr / (BINS * conventions.row_ticks))
    return np.maximum(1, np.rint(rows)).astype(np.int64)


def session_nodes(
    rows: BarRows, starts: Integers, close: Floats, height: Integers, conventions: ProfileConventions
) -> Nodes:
    """Return the nodes of each bar's profile so far; `close` (bars,) is in ticks, `height` (sessions,) in rows.

    Args:
        starts: number of the first bar of each session, shape (sessions,).
        close: closing prices in ticks, shape (bars,).
        height: height of a bin in rows, shape (sessions,).
    """
    tall = np.repeat(height, np.diff(np.append(starts, len(rows))))
    parts, bar = [], 0
    for tile in session_tiles(in_bins(rows, tall), starts):
        here = slice(bar, bar + len(tile.table))
        parts.append(nodes_of_tile(tile, close[here], int(tall[bar]), conventions))
        bar = here.stop
    return Nodes.joined(parts)


def nodes_of_tile(tile: Tile, close: Floats, height: int, conventions: ProfileConventions) -> Nodes:
    """Return the nodes of each profile in `tile`, whose rows are bins; `close` is in ticks, `height` of a bin in rows.

    Bins lie on a fixed grid: bin k is rows k * height to (k + 1) * height - 1. A grid that began at the
    tile's lowest row would show the session's low before it was traded.

    Args:
        close: closing prices in ticks, shape (profiles,).
        height: height of a bin in rows.
    """
    bins = tile.table[:, PAD - 1 : tile.table.shape[1] - PAD + 1]  # with an empty one at either end
    first_bin, low, high = tile.first - 1, tile.low - PAD + 1, tile.high - PAD + 1
    centre = _centres(first_bin, bins.shape[1], height, conventions)
    volume, span = tile.total[:, np.newaxis], (high - low + 1)[:, np.newaxis]
    rises, falls = bins[:, 1:] > bins[:, :-1], bins[:, 1:] < bins[:, :-1]
    inner = bins[:, 1:-1]
    peaks, troughs = np.zeros(bins.shape, np.bool_), np.zeros(bins.shape, np.bool_)
    peaks[:, 1:-1] = rises[:, :-1] & ~rises[:, 1:] & (inner >= -(-volume // span))
    troughs[:, 1:-1] = falls[:, :-1] & ~falls[:, 1:] & (inner <= volume // span)
    bars = np.arange(len(bins))
    troughs[bars, low - 1] = troughs[bars, high + 1] = True
    own = to_rows(np.rint(close).astype(np.int64), conventions) // height - first_bin
    above, below = _next(troughs, np.clip(own, low, high))
    count, nearest = _nearest(peaks, centre, close)
    return Nodes(count=count, nearest_high=nearest, low_above=centre[above] - close, low_below=close - centre[below])


def _centres(first_bin: int, bins: int, height: int, conventions: ProfileConventions) -> Floats:
    rows = (first_bin + np.arange(bins)) * height
    return (row_centre(rows, conventions) + row_centre(rows + height - 1, conventions)) / 2


def _nearest(marked: Booleans, centre: Floats, close: Floats) -> tuple[Floats, Floats]:
    """Return how many centres are marked, and close minus the nearest, the upper of two; 0 where none is.

    Marks are few, so their list is shorter than the table.
    """
    bar, column = np.nonzero(marked)
    count = np.bincount(bar, minlength=len(close))
    some = np.flatnonzero(count)
    nearest = np.zeros(len(close))
    if len(some):
        away = centre[column] - close[bar]
        begins = (np.cumsum(count) - count)[some]
        above = np.minimum.reduceat(np.where(away >= 0, away, np.inf), begins)
        below = np.minimum.reduceat(np.where(away < 0, -away, np.inf), begins)
        nearest[some] = np.where(above <= below, -above, below)
    return count.astype(np.float64), nearest


def _next(marked: Booleans, own: Integers) -> tuple[Integers, Integers]:
    """Return the next marked column above and below each bar's `own`; there is always one on either side."""
    bar, column = np.nonzero(marked)
    count = np.bincount(bar, minlength=len(own))
    begins = np.cumsum(count) - count
    mine = own[bar]
    above = np.minimum.reduceat(np.where(column > mine, column, marked.shape[1]), begins)
    below = np.maximum.reduceat(np.where(column < mine, column, -1), begins)
    return above, below
