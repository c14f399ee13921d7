"""Levels of growing profiles in about the same time a bar for any range of prices; `zones` has how they are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.finished import doubled_middle
from trainer.data.profiles.profile import BarRows, Levels
from trainer.data.profiles.value_area import Integers, required
from trainer.data.profiles.value_search import Lanes, area
from trainer.data.profiles.zones import BATCH_CELLS, Piece, Zones, pieces, span_of, zones_of

FAR = np.iinfo(np.int64).max


def segment_levels(bars: BarRows, starts: Integers, conventions: ProfileConventions) -> Levels:
    """Return, for each bar, the levels of its session's profile up to and including it.

    Args:
        starts: index of each session's first bar, (sessions,), ascending from 0.
    """
    span = span_of(int(np.diff(starts, append=len(bars)).max()))
    found = [_levels(parts, span, conventions) for parts in _batches(bars, starts, span)]
    return Levels(**{f.name: np.concatenate([getattr(part, f.name) for part in found]) for f in fields(Levels)})


def _batches(bars: BarRows, starts: Integers, span: int) -> Iterator[list[Piece]]:
    """Yield pieces of sessions, as many at once as have BATCH_CELLS cells."""
    ends = bool(bars.more_low.any() or bars.more_high.any())
    waiting: list[Piece] = []
    for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(bars)], strict=True):
        for piece in pieces(bars[begin:end], span, ends=ends):
            waiting.append(piece)
            if sum(part.base.size for part in waiting) >= BATCH_CELLS:
                yield waiting
                waiting = []
    if waiting:
        yield waiting


def _levels(parts: list[Piece], span: int, conventions: ProfileConventions) -> Levels:
    """Return the levels of all profiles of `parts`."""
    low, high, total = (np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "total"))
    zones = zones_of(parts, span)
    cell, row, peak = _peaks(zones, low, high, conventions)
    bottom, top = row.copy(), row.copy()
    need = np.minimum(required(total, conventions), total)
    lanes = np.flatnonzero(peak < need)
    if len(lanes):
        search = Lanes.of(zones, lanes, cell[lanes], row[lanes])
        bottom[lanes], top[lanes] = area(search, need[lanes], up_first=conventions.value_tie == "up")
    return Levels(poc=row, high=np.minimum(top, high), low=np.maximum(bottom, low), peak=peak, total=total)


def _peaks(
    zones: Zones, low: Integers, high: Integers, conventions: ProfileConventions
) -> tuple[Integers, Integers, Integers]:
    """Return cell, row and volume of each profile's point of control."""
    most = np.maximum.reduceat(zones.base, zones.begin[:-1])
    volume = zones.table(most, -1).take(zones.span, axis=0)
    volume += zones.more
    peak = volume.max(axis=1)
    twice = doubled_middle(low, high, conventions)
    lane, place = np.nonzero(volume == np.where(peak > 0, peak, FAR)[:, np.newaxis])
    zone = zones.first[zones.span[lane]] + place
    at, row = _nearest(zones, most, lane, zone, twice)
    if len(lane) > np.count_nonzero(peak):
        order = np.lexsort((row, np.abs(2 * row - twice[lane]), lane))
        order = order[np.diff(lane[order], prepend=-1) > 0]
        lane, at, row = lane[order], at[order], row[order]
    rows = np.clip(twice >> 1, low, high)  # where there is no volume at all
    cells = np.zeros_like(rows)
    rows[lane], cells[lane] = row, at
    return cells, rows, peak


def _nearest(
    zones: Zones, most: Integers, lane: Integers, zone: Integers, twice: Integers
) -> tuple[Integers, Integers]:
    """Return cell and row, of those of each `zone` with its highest volume, that the tie rule prefers for `lane`."""
    highest = np.flatnonzero(zones.base == np.repeat(most, np.diff(zones.begin)))
    first = np.searchsorted(highest, zones.begin)
    last = first[zone + 1] - 1
    single = first[zone] == last
    at = highest[last]
    row = _row_in(zones, at, twice[lane])
    some = np.flatnonzero(~single)
    if len(some):
        at[some], row[some] = _nearest_of_many(zones, highest, first[zone[some]], last[some], twice[lane[some]])
    return at, row


def _row_in(zones: Zones, cell: Integers, twice: Integers) -> Integers:
    return np.asarray(np.clip(twice >> 1, zones.edges[cell], zones.edges[cell + 1] - 1))


def _nearest_of_many(
    zones: Zones, highest: Integers, first: Integers, last: Integers, twice: Integers
) -> tuple[Integers, Integers]:
    """Return the cell of `highest` from `first` to `last` with the row nearest to half of `twice`, and that row."""
    low, high = first.copy(), last + 1
    for _ in range(int((high - low).max()).bit_length()):  # the first whose top is not below the wanted row
        middle = (low + high) >> 1
        below = zones.edges[highest[np.minimum(middle, last)] + 1] - 1 < twice >> 1
        low = np.where((low < high) & below, middle + 1, low)
        high = np.where((low <= middle) & ~below, middle, high)
    above, under = highest[np.minimum(low, last)], highest[np.maximum(low - 1, first)]
    row_above, row_under = _row_in(zones, above, twice), _row_in(zones, under, twice)
    lower = np.abs(2 * row_under - twice) <= np.abs(2 * row_above - twice)
    return np.where(lower, under, above), np.where(lower, row_under, row_above)
