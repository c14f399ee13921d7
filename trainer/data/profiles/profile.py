"""Volume profiles of sessions, of growing sessions and of moving windows, in whole numbers of ticks and volume.

A bar gives every row from its low to its high the same whole number of volume units. As a difference array
that is two additions a bar; a running sum over the rows makes the profile, so a profile costs bars + rows.
Sums of whole numbers are exact: no chunk size, order or number of workers can change them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.value_area import EDGE, Integers, grow
from trainer.data.ticks import to_ticks
from trainer.runtime.errors import TrainerError

PAD = 2  # cells on either side of a profile: the edge, and one that may be read beyond it
MOST_UNITS = 2.0**61  # volume of all bars that enter one profile, in units; 64 bits hold no more
USUAL_ROWS = 10_000  # of a profile, at most
MOST_ROWS = 4_000_000  # of one profile: above that the row height is wrong, not the market

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BarRows:
    """Bars on the grid of rows: the lowest and highest row of each, and the volume units each row gets.

    more_low, more_high: what the lowest and the highest row get beyond `share`, or below zero less.
    """

    low: Integers
    high: Integers
    share: Integers
    more_low: Integers
    more_high: Integers

    def __len__(self) -> int:
        return len(self.low)

    @property
    def volume(self) -> Integers:
        """What each bar brings to a profile in all, in units."""
        return self.share * (self.high - self.low + 1) + self.more_low + self.more_high

    def __getitem__(self, bars: slice) -> BarRows:
        return BarRows(**{name: values[bars] for name, values in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Levels:
    """What is read from profiles, each of shape (profiles,): rows of the levels, and volumes in units."""

    poc: Integers
    high: Integers  # value area high
    low: Integers  # value area low
    peak: Integers  # volume of the row at the point of control
    total: Integers


def to_rows(ticks: Integers, conventions: ProfileConventions) -> Integers:
    """Return the row of each tick."""
    return (ticks - _bottom(conventions)) // conventions.row_ticks


def _bottom(conventions: ProfileConventions) -> int:
    """Return the lowest tick of row 0."""
    height = conventions.row_ticks
    return conventions.row_origin - {"floor": 0, "nearest": height // 2, "ceil": height - 1}[conventions.rounding]


def row_centre(rows: Integers, conventions: ProfileConventions) -> Floats:
    """Return the middle of each row, in ticks."""
    return row_edge(rows, conventions) + _extent(conventions) / 2


def row_edge(rows: Integers, conventions: ProfileConventions) -> Floats:
    """Return the lower edge of each row, in ticks."""
    return np.asarray(rows * conventions.row_ticks + _bottom(conventions), np.float64)


def _extent(conventions: ProfileConventions) -> int:
    """Return how far a row's upper edge is above the lower: to its highest tick, or to the next row if prices flow."""
    return conventions.row_ticks - (conventions.allocation != "proportional")


def level(rows: Integers, which: Literal["poc", "high", "low"], conventions: ProfileConventions) -> Floats:
    """Return the price that stands for a point of control, value area high or low in these rows, in ticks.

    Args:
        rows: rows of the grid, any shape.
        which: point of control, value area high or value area low.
    """
    outer = {"poc": "centre", "high": "high", "low": "low"}[which]
    place = outer if conventions.levels == "outer" else conventions.levels
    part = {"low": 0.0, "centre": 0.5, "high": 1.0}[place]
    return row_edge(rows, conventions) + part * _extent(conventions)


def bar_rows(low: Floats, high: Floats, close: Floats, volume: Floats, conventions: ProfileConventions) -> BarRows:
    """Place bars on the grid; prices in currency, volume in contracts, each of shape (bars,).

    Args:
        low: lowest prices in currency, shape (bars,).
        high: highest prices in currency, shape (bars,).
        close: closing prices in currency, shape (bars,).
        volume: contracts, shape (bars,).

    Raises:
        TrainerError: RM571 where the volumes are too large to be counted exactly.
    """
    if volume.sum() * 2.0**conventions.volume_bits >= MOST_UNITS:
        raise TrainerError("RM571", what=f"the bars of one profile have a volume of {volume.sum():.3g} in all")
    units = np.rint(volume * 2.0**conventions.volume_bits).astype(np.int64)
    bottom, top, ends = (to_ticks(price, conventions.tick) for price in (low, high, close))
    if conventions.allocation == "close":
        bottom = top = ends
    if conventions.allocation == "proportional":
        return _by_overlap(bottom, top, units, conventions)
    first, last = to_rows(bottom, conventions), to_rows(top, conventions)
    none = np.zeros_like(units)
    return BarRows(low=first, high=last, share=units // (last - first + 1), more_low=none, more_high=none)


def _by_overlap(low: Integers, high: Integers, units: Integers, conventions: ProfileConventions) -> BarRows:
    """Give each row the part of the volume that is the part of the bar's range within it; a tick's units are whole."""
    first, height = to_rows(low, conventions), conventions.row_ticks
    last = np.maximum(first, to_rows(high - 1, conventions))  # a bar that ends on an edge has nothing above it
    tick = units // np.maximum(high - low, 1)
    share = np.where(last - first > 1, tick * height, 0)  # elsewhere no row is whole, and the product might not fit
    within, edge = first < last, (_bottom(conventions) + height * row for row in (first + 1, last))
    upper_of_first, lower_of_last = edge
    alone = np.where(high > low, tick * (high - low), units)
    more_low = np.where(within, tick * (upper_of_first - low) - share, alone - share)
    more_high = np.where(within, tick * (high - lower_of_last) - share, 0)
    return BarRows(low=first, high=last, share=share, more_low=more_low, more_high=more_high)


def in_bins(bars: BarRows, height: Integers) -> BarRows:
    """Return the bars on coarser rows, each of `height` (bars,) of these; the volume of a bin is added up."""
    low, high = bars.low // height, bars.high // height
    whole, share = high - low > 1, np.where(high - low > 1, bars.share * height, 0)
    lower = bars.share * (np.minimum(bars.high + 1, (low + 1) * height) - bars.low) + bars.more_low
    upper = bars.share * (bars.high + 1 - high * height) + bars.more_high
    alone = low == high
    more_low = np.where(alone, lower + bars.more_high, lower - share)
    return BarRows(
        low=low,
        high=high,
        share=np.where(whole, share, 0),
        more_low=more_low,
        more_high=np.where(alone, 0, upper - share),
    )


def difference_profile(bars: BarRows, first: int, rows: int) -> Integers:
    """Return the profile of all `bars` on `rows` rows from row `first`, in units, shape (rows,).

    Args:
        first: lowest row of the profile.
        rows: number of rows of the profile.
    """
    change = np.zeros(rows + 2, np.int64)
    add_changes(change, bars, bars.low - first, bars.high - first)
    return np.cumsum(change)[:-2]


def add_changes(change: Integers, bars: BarRows, low: Integers, high: Integers) -> None:
    """Add to `change` by how much each cell is above the one before it, of bars whose ends are cells `low`, `high`.

    Args:
        change: differences between neighbouring cells, written.
        low: cell of each bar's lowest row, shape (bars,).
        high: cell of each bar's highest row, shape (bars,).
    """
    np.add.at(change, low, bars.share + bars.more_low)
    np.subtract.at(change, low + 1, bars.more_low)
    np.add.at(change, high, bars.more_high)
    np.subtract.at(change, high + 1, bars.share + bars.more_high)


def session_profiles(bars: BarRows, starts: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the profiles of consecutive runs of bars, each begun at one of `starts`, in one flat array.

    Also returned: the place of each profile's lowest row in the array, and which row that is. Between
    profiles there are cells as `grow` wants them.
    """
    lowest = np.minimum.reduceat(bars.low, starts)
    rows = np.maximum.reduceat(bars.high, starts) - lowest + 1
    require_rows(int(rows.max()))
    place = PAD + np.concatenate([[0], np.cumsum(rows + PAD)[:-1]])
    shift = np.repeat(place - lowest, np.diff(np.append(starts, len(bars))))
    change = np.zeros(int(place[-1] + rows[-1]) + PAD, np.int64)
    add_changes(change, bars, bars.low + shift, bars.high + shift)
    flat = np.cumsum(change)
    flat[place - 1] = flat[place + rows] = EDGE
    return flat, place, lowest


def require_rows(rows: int) -> None:
    """Raise RM572 where a profile would have more rows than any market needs."""
    if rows > MOST_ROWS:
        what = f"one profile would have {rows:,} rows; {MOST_ROWS:,} are the limit"
        advice = "Name the price step with --tick, such as 0.05 for prices like 14020.7999, or make rows higher: "
        advice += (
            f"--row-ticks {10 ** math.ceil(math.log10(rows / USUAL_ROWS))} times the present; correct a wrong price."
        )
        raise TrainerError("RM572", what=what, next=advice)


def session_levels(bars: BarRows, starts: Integers, conventions: ProfileConventions) -> Levels:
    """Return the levels of the finished profile of each run of bars that begins at one of `starts`.

    Args:
        starts: number of the first bar of each session, shape (sessions,).
    """
    flat, place, lowest = session_profiles(bars, starts)
    rows = np.maximum.reduceat(bars.high, starts) - lowest + 1
    if conventions.rows == "occupied":
        return _levels_of_occupied(flat, place, rows, lowest, conventions)
    return _levels(flat, place, rows, lowest, conventions)


def _levels(
    flat: Integers, place: Integers, rows: Integers, lowest: Integers, conventions: ProfileConventions
) -> Levels:
    begins = np.cumsum(rows) - rows
    local = np.arange(int(rows.sum())) - np.repeat(begins, rows)
    volume = flat[np.repeat(place, rows) + local]
    total = np.add.reduceat(volume, begins)
    poc = _peaks(volume, local, rows, begins, conventions)
    low, high = grow(flat, place + poc, total, conventions)
    shift = lowest - place
    return Levels(poc=poc + lowest, high=high + shift, low=low + shift, peak=flat[place + poc], total=total)


def _peaks(
    volume: Integers, local: Integers, rows: Integers, begins: Integers, conventions: ProfileConventions
) -> Integers:
    """Return the row of each profile's point of control; `local` is the row of each cell in its own profile."""
    lower = volume != np.repeat(np.maximum.reduceat(volume, begins), rows)
    if conventions.poc_tie == "high":
        return np.asarray(np.maximum.reduceat(np.where(lower, -1, local), begins))
    if conventions.poc_tie == "low":
        return np.asarray(np.minimum.reduceat(np.where(lower, MOST_ROWS, local), begins))
    twice_middle = np.repeat(rows - (conventions.poc_tie == "middle"), rows)
    scale = 2 * MOST_ROWS
    score = np.abs(2 * local - twice_middle) * scale + local  # nearest first, then lowest
    return np.asarray(np.minimum.reduceat(np.where(lower, scale * scale, score), begins) % scale)


def _levels_of_occupied(
    flat: Integers, place: Integers, rows: Integers, lowest: Integers, conventions: ProfileConventions
) -> Levels:
    """Return levels where rows without volume do not exist; a profile without any volume keeps its lowest row."""
    keep = flat != 0
    keep[place] |= np.add.reduceat(flat, np.stack([place, place + rows], axis=1).ravel())[::2] == 0
    keep[:PAD] = keep[-PAD:] = True
    position = np.flatnonzero(keep)  # of each remaining cell in `flat`
    first = np.searchsorted(position, place)
    count = np.searchsorted(position, place + rows) - first
    dense = _levels(flat[position], first, count, np.zeros_like(first), conventions)
    shift = lowest - place
    back = {name: position[first + getattr(dense, name)] + shift for name in ("poc", "high", "low")}
    return Levels(**back, peak=dense.peak, total=dense.total)
