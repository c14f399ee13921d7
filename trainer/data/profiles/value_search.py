"""Value areas of many profiles by binary search: a few dozen looks at a profile, however many rows it has.

Growing an area by its larger neighbour takes rows in the order of a key: the lowest volume between the row and the
point of control, that row included; of equal keys one side comes first, as `value_tie` says. (Behind a thin row the
other side is thinner still, or it would have been taken; so thick rows behind it follow at once.) Keys fall on either
side, so where the area ends can be searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
BIG = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Lanes:
    """Profiles as runs of segments, a segment being rows of one volume; flat arrays hold those of all profiles.

    volume: of a row of each segment; key: see above; sums: of the volume up to and with each segment; edges: lowest row
    of each segment, and behind the last one the row above it. origin, edge: where each profile begins in these,
    (profiles,); columns: its segments. column, row, peak: of the point of control; need: volume of the area.
    """

    volume: Integers
    key: Integers
    sums: Integers
    edges: Integers
    origin: Integers
    edge: Integers
    columns: Integers
    column: Integers
    row: Integers
    peak: Integers
    need: Integers

    def some(self, lanes: Integers) -> Lanes:
        """Return the profiles with these numbers."""
        names = ("origin", "edge", "columns", "column", "row", "peak", "need")
        parts = {name: getattr(self, name)[lanes] for name in names}
        return Lanes(volume=self.volume, key=self.key, sums=self.sums, edges=self.edges, **parts)

    def bottom(self, column: Integers) -> Integers:
        """Return the lowest row of a segment."""
        return self.edges.take(self.edge + column)

    def held(self, last: Integers, first: Integers) -> Integers:
        """Return the volume from segment `first` to `last`, of the point of control's own only what they reach."""
        here, place = self.column, self.origin + self.column
        above = self.peak * (self.bottom(here + 1) - 1 - self.row)
        above += self.sums.take(self.origin + np.maximum(last, here)) - self.sums.take(place)
        below = self.peak * (self.row - self.bottom(here))
        low = np.minimum(first, here)
        at = self.origin + low
        before = self.sums.take(at) - self.volume.take(at) * (self.bottom(low + 1) - self.bottom(low))
        own = self.peak * (self.bottom(here + 1) - self.bottom(here))
        below += self.sums.take(place) - own - before
        return self.peak + np.where(last < here, 0, above) + np.where(first > here, 0, below)


def bisect(low: Integers, high: Integers, holds: Callable[[Integers], NDArray[np.bool_]]) -> Integers:
    """Return the first number from `low` on, below `high`, for which `holds`, each (profiles,); else `high`."""
    low, high = low.copy(), high.copy()
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        active = low < high
        good = holds(np.where(active, middle, 0)) & active
        high = np.where(good, middle, high)
        low = np.where(active & ~good, middle + 1, low)
    return low


def area(lanes: Lanes, *, up_first: bool) -> tuple[Integers, Integers]:
    """Return lowest and highest row of each value area; beyond the range it may hold rows without volume."""
    low, high = lanes.row.copy(), lanes.row.copy()
    some = np.flatnonzero(lanes.peak < lanes.need)
    if len(some):
        low[some], high[some] = _grown(lanes.some(some), up_first)
    return low, high


def _grown(lanes: Lanes, up_first: bool) -> tuple[Integers, Integers]:
    here, origin = lanes.column, lanes.origin

    def taken_below(up: Integers) -> Integers:
        """Return the lowest segment below that is taken before segment `up`; above the POC's where none is."""
        least = lanes.key.take(origin + np.maximum(up, here)) + up_first
        return bisect(np.zeros_like(here), here + 1, lambda at: lanes.key.take(origin + at) >= least)

    def enough(up: Integers) -> NDArray[np.bool_]:
        up = np.maximum(up, here)
        return lanes.held(up, taken_below(up)) >= lanes.need

    up = bisect(here, lanes.columns, enough)  # the first segment above with which it is enough
    within = np.minimum(up, lanes.columns - 1)
    below = np.where(up < lanes.columns, taken_below(within), 0)
    before = lanes.held(up - 1, below)
    ends_above = (up < lanes.columns) & (before < lanes.need)
    low_up = np.where(below > here, lanes.row, lanes.bottom(np.minimum(below, here)))
    start = np.where(up == here, lanes.row, lanes.bottom(within) - 1)
    high_up = start + _rows(lanes, before, within, ends_above)
    last = up - 1
    down = here - bisect(np.zeros_like(here), here, lambda n: lanes.held(last, here - n) >= lanes.need)
    inside = lanes.held(last, down + 1)
    begin = np.where(down == here, lanes.row, lanes.bottom(np.minimum(down + 1, here)))
    low_down = begin - _rows(lanes, inside, down, ~ends_above)
    high_down = np.where(last < here, lanes.row, lanes.bottom(last + 1) - 1)
    return np.where(ends_above, low_up, low_down), np.where(ends_above, high_up, high_down)


def _rows(lanes: Lanes, inside: Integers, column: Integers, wanted: NDArray[np.bool_]) -> Integers:
    """Return how many rows of a segment the area needs beside what is `inside`."""
    volume = np.maximum(lanes.volume.take(lanes.origin + column), 1)
    return np.where(wanted, -((inside - lanes.need) // volume), 0)


def keys(volume: Integers, column: Integers) -> Integers:
    """Return the key of each cell of `volume` (profiles, segments); `column` is that of the point of control."""
    places = np.arange(volume.shape[1])
    left = places < column[:, np.newaxis]
    above, below = volume.copy(), volume.copy()
    np.copyto(above, BIG, where=left)
    np.copyto(below, BIG, where=places > column[:, np.newaxis])
    np.minimum.accumulate(above, axis=1, out=above)
    np.minimum.accumulate(below[:, ::-1], axis=1, out=below[:, ::-1])
    np.copyto(above, below, where=left)
    return above
