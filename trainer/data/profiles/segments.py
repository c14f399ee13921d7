"""Growing profiles in segments of rows: where no bar begins or ends, rows are alike, and one number stands for them.

The segments of a profile are at most twice its bars (and as many again where ends have shares of their own), whatever
the range of prices. Sessions are cut into parts; each knows the edges of the bars so far, and no later one's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.profile import BarRows, Levels, require_rows
from trainer.data.profiles.value_area import Integers, required
from trainer.data.profiles.value_search import Lanes, area, keys

PART = 128  # bars
BATCH_CELLS = 120_000  # of parts whose value areas are searched for at once: an array operation has a price of its own


@dataclass(frozen=True, kw_only=True)
class Part:
    """Consecutive profiles of one session: volume of a row of each segment (bars, segments), edges (segments + 1,).

    low, high: lowest and highest row of each profile's range, (bars,); total: its volume.
    """

    volume: Integers
    edges: Integers
    low: Integers
    high: Integers
    total: Integers


def segment_levels(bars: BarRows, starts: Integers, conventions: ProfileConventions) -> Levels:
    """Return, for each bar, the levels of its session's profile up to and including it; sessions begin at `starts`."""
    found: list[Levels] = []
    waiting: list[Part] = []
    cells = 0
    for part in (p for a, b in _sessions(starts, len(bars)) for p in _parts(bars[a:b])):
        waiting.append(part)
        cells += part.volume.size
        if cells >= BATCH_CELLS:
            found.append(_levels(waiting, conventions))
            waiting, cells = [], 0
    if waiting:
        found.append(_levels(waiting, conventions))
    return Levels(**{f.name: np.concatenate([getattr(part, f.name) for part in found]) for f in fields(Levels)})


def _sessions(starts: Integers, bars: int) -> Iterator[tuple[int, int]]:
    yield from zip(starts.tolist(), [*starts[1:].tolist(), bars], strict=True)


def _parts(bars: BarRows) -> Iterator[Part]:
    """Yield the growing profiles of one session."""
    require_rows(int(bars.high.max() - bars.low.min()) + 1)
    low, high = np.minimum.accumulate(bars.low), np.maximum.accumulate(bars.high)
    total = np.cumsum(bars.volume)
    edges, carried = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for begin in range(0, len(bars), PART):
        part = slice(begin, min(begin + PART, len(bars)))
        before = edges
        edges = np.unique(np.concatenate([before, _edges(bars[part])]))
        volume = _changes(bars[part], edges)
        if len(before):
            volume[0] += _on(edges, before, carried)
        for bar in range(1, len(volume)):  # line by line: a third of the time of numpy's sum down the columns
            volume[bar] += volume[bar - 1]
        carried = volume[-1].copy()
        yield Part(volume=volume, edges=edges, low=low[part], high=high[part], total=total[part])


def _edges(bars: BarRows) -> Integers:
    """Return the rows at which the volume of some bar changes."""
    parts = [bars.low, bars.high + 1]
    if bars.more_low.any() or bars.more_high.any():
        parts += [bars.low + 1, bars.high]
    return np.concatenate(parts)


def _on(edges: Integers, before: Integers, volume: Integers) -> Integers:
    """Return `volume` of segments with the edges `before` on those with more `edges`; 0 outside."""
    place = np.searchsorted(before, edges[:-1], "right") - 1
    inside = (place >= 0) & (place < len(volume))
    return np.where(inside, volume[np.clip(place, 0, len(volume) - 1)], 0)


def _changes(bars: BarRows, edges: Integers) -> Integers:
    """Return each bar's own volume of a row, (bars, segments)."""
    table = np.zeros((len(bars), len(edges)), np.int64)
    at = np.arange(len(bars)) * len(edges)
    low, above = np.searchsorted(edges, bars.low), np.searchsorted(edges, bars.high + 1)
    flat = table.reshape(-1)
    np.add.at(flat, at + low, bars.share + bars.more_low)
    np.subtract.at(flat, at + above, bars.share + bars.more_high)
    if bars.more_low.any() or bars.more_high.any():
        np.subtract.at(flat, at + np.searchsorted(edges, bars.low + 1), bars.more_low)
        np.add.at(flat, at + np.searchsorted(edges, bars.high), bars.more_high)
    np.cumsum(table, axis=1, out=table)
    return np.ascontiguousarray(table[:, :-1])


def _levels(parts: list[Part], conventions: ProfileConventions) -> Levels:
    """Return the levels of all profiles of `parts`."""
    peaks = [_peak(part, conventions) for part in parts]
    column, row, peak = (np.concatenate([found[place] for found in peaks]) for place in range(3))
    low, high, total = (np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "total"))
    sizes, bars = [part.volume.size for part in parts], [len(part.volume) for part in parts]
    columns = np.repeat([part.volume.shape[1] for part in parts], bars)
    begins = np.repeat(np.cumsum([0, *sizes[:-1]]), bars)
    lanes = Lanes(
        volume=np.concatenate([part.volume.reshape(-1) for part in parts]),
        key=np.concatenate([keys(part.volume, found[0]).reshape(-1) for part, found in zip(parts, peaks, strict=True)]),
        sums=np.concatenate([np.cumsum(part.volume * np.diff(part.edges), axis=1).reshape(-1) for part in parts]),
        edges=np.concatenate([part.edges for part in parts]),
        origin=begins + np.concatenate([np.arange(n) for n in bars]) * columns,
        edge=np.repeat(np.cumsum([0, *(len(part.edges) for part in parts[:-1])]), bars),
        columns=columns,
        column=column,
        row=row,
        peak=peak,
        need=np.minimum(required(total, conventions), total),
    )
    bottom, top = area(lanes, up_first=conventions.value_tie == "up")
    return Levels(poc=row, high=np.minimum(top, high), low=np.maximum(bottom, low), peak=peak, total=total)


def _peak(part: Part, conventions: ProfileConventions) -> tuple[Integers, Integers, Integers]:
    """Return segment, row and volume of each profile's point of control."""
    volume, bars = part.volume, np.arange(len(part.volume))
    column: Integers = volume.argmax(axis=1)
    highest = volume[bars, column]
    volume[bars, column] -= 1  # so that a second search finds another segment as high, if there is one
    tied = np.flatnonzero(volume.max(axis=1) == highest)
    volume[bars, column] = highest
    low, high = part.edges[column], part.edges[column + 1] - 1
    row = np.clip(_wanted(part.low, part.high, conventions), low, high)
    if len(tied):
        column[tied], row[tied] = _of_tied(part, tied, highest[tied], conventions)
    empty = np.flatnonzero(highest == 0)  # then rows outside the range are as high as those inside
    row[empty] = np.clip(_wanted(part.low, part.high, conventions), part.low, part.high)[empty]
    column[empty] = np.searchsorted(part.edges, row[empty], "right") - 1
    return column, row, highest


def _wanted(low: Integers, high: Integers, conventions: ProfileConventions) -> Integers:
    """Return the row that the tie rule would take of all rows from `low` to `high`."""
    if conventions.poc_tie in ("low", "high"):
        return low if conventions.poc_tie == "low" else high
    return (low + high + (conventions.poc_tie == "middle_upper")) >> 1


def _of_tied(
    part: Part, tied: Integers, highest: Integers, conventions: ProfileConventions
) -> tuple[Integers, Integers]:
    """Return segment and row for profiles with several segments of the highest volume."""
    lane, column = np.nonzero(part.volume[tied] == highest[:, np.newaxis])
    low, high = part.low[tied][lane], part.high[tied][lane]
    row = np.clip(_wanted(low, high, conventions), part.edges[column], part.edges[column + 1] - 1)
    twice = low + high + (conventions.poc_tie == "middle_upper")
    away = {"low": row - low, "high": high - row}.get(conventions.poc_tie, np.abs(2 * row - twice))
    order = np.lexsort((row, away, lane))
    first = order[np.concatenate([[True], lane[order][1:] != lane[order][:-1]])]
    return column[first], row[first]
