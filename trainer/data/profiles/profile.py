"""Volume profiles of sessions, of growing sessions and of moving windows, in whole numbers of ticks and volume.

A bar gives every row from its low to its high the same whole number of volume units. As a difference array
that is two additions a bar; a running sum over the rows makes the profile, so a profile costs bars + rows.
Sums of whole numbers are exact: no chunk size, order or number of workers can change them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.conventions import VOLUME_BITS, ProfileConventions
from trainer.data.profiles.value_area import EDGE, Integers, grow
from trainer.runtime.errors import TrainerError

PAD = 2  # cells on either side of a profile: the edge, and one that may be read beyond it
MOST_UNITS = 2.0**61  # volume of all bars that enter one profile, in units; 64 bits hold no more
MOST_ROWS = 4_000_000  # of one profile: above that the row height is wrong, not the market

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BarRows:
    """Bars on the grid of rows: the lowest and highest row of each, and the volume units each row gets."""

    low: Integers
    high: Integers
    share: Integers

    def __len__(self) -> int:
        return len(self.low)

    @property
    def volume(self) -> Integers:
        """What each bar brings to a profile in all, in units."""
        return self.share * (self.high - self.low + 1)

    def __getitem__(self, bars: slice) -> BarRows:
        return BarRows(low=self.low[bars], high=self.high[bars], share=self.share[bars])


@dataclass(frozen=True, kw_only=True)
class Levels:
    """What is read from profiles, each of shape (profiles,): rows of the levels, and volumes in units."""

    poc: Integers
    high: Integers  # value area high
    low: Integers  # value area low
    peak: Integers  # volume of the row at the point of control
    total: Integers


def to_ticks(price: Floats, tick: float) -> Integers:
    """Return prices in whole ticks, to the nearest."""
    return np.rint(price / tick).astype(np.int64)


def to_rows(ticks: Integers, conventions: ProfileConventions) -> Integers:
    """Return the row of each tick."""
    height = conventions.row_ticks
    shift = {"floor": 0, "nearest": height // 2, "ceil": height - 1}[conventions.rounding]
    return (ticks + shift) // height


def row_centre(rows: Integers, conventions: ProfileConventions) -> Floats:
    """Return the middle of each row, in ticks."""
    height = conventions.row_ticks
    shift = {"floor": 0, "nearest": height // 2, "ceil": height - 1}[conventions.rounding]
    return np.asarray(rows * height - shift + (height - 1) / 2, np.float64)


def bar_rows(low: Floats, high: Floats, close: Floats, volume: Floats, conventions: ProfileConventions) -> BarRows:
    """Place bars on the grid; prices in currency, volume in contracts, each of shape (bars,).

    Raises:
        TrainerError: RM571 where the volumes are too large to be counted exactly.
    """
    if volume.sum() * 2.0**VOLUME_BITS >= MOST_UNITS:
        raise TrainerError("RM571", what=f"the bars of one profile have a volume of {volume.sum():.3g} in all")
    units = np.rint(volume * 2.0**VOLUME_BITS).astype(np.int64)
    if conventions.allocation == "close":
        row = to_rows(to_ticks(close, conventions.tick), conventions)
        return BarRows(low=row, high=row, share=units)
    first = to_rows(to_ticks(low, conventions.tick), conventions)
    last = to_rows(to_ticks(high, conventions.tick), conventions)
    return BarRows(low=first, high=last, share=units // (last - first + 1))


def difference_profile(bars: BarRows, first: int, rows: int) -> Integers:
    """Return the profile of all `bars` on `rows` rows from row `first`, in units, shape (rows,)."""
    change = np.zeros(rows + 1, np.int64)
    np.add.at(change, bars.low - first, bars.share)
    np.subtract.at(change, bars.high - first + 1, bars.share)
    return np.cumsum(change)[:-1]


def session_profiles(bars: BarRows, starts: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the profiles of consecutive runs of bars, each begun at one of `starts`, in one flat array.

    Also returned: where each profile's lowest row lies in the array, and which row that is. Between
    profiles there are cells as `grow` wants them.
    """
    lowest = np.minimum.reduceat(bars.low, starts)
    rows = np.maximum.reduceat(bars.high, starts) - lowest + 1
    require_rows(int(rows.max()))
    place = PAD + np.concatenate([[0], np.cumsum(rows + PAD)[:-1]])
    shift = np.repeat(place - lowest, np.diff(np.append(starts, len(bars))))
    change = np.zeros(int(place[-1] + rows[-1]) + PAD, np.int64)
    np.add.at(change, bars.low + shift, bars.share)
    np.subtract.at(change, bars.high + shift + 1, bars.share)
    flat = np.cumsum(change)
    flat[place - 1] = flat[place + rows] = EDGE
    return flat, place, lowest


def require_rows(rows: int) -> None:
    """Raise RM572 where a profile would have more rows than any market needs."""
    if rows > MOST_ROWS:
        raise TrainerError("RM572", what=f"one profile would have {rows:,} rows; {MOST_ROWS:,} are the limit")


def session_levels(bars: BarRows, starts: Integers, conventions: ProfileConventions) -> Levels:
    """Return the levels of the finished profile of each run of bars that begins at one of `starts`."""
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
