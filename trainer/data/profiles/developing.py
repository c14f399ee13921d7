"""Profiles that move: growing through a session, or over the last bars. One profile a bar, in tiles that fit a cache.

A tile is (bars, columns): each bar's own share of volume, summed down the bars. Whole numbers again, so a
tile may begin anywhere with the profile so far and gives the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.compiled.levels import compiled_levels
from trainer.data.profiles.compiled.library import loop_for
from trainer.data.profiles.profile import PAD, BarRows, Levels, require_rows
from trainer.data.profiles.segments import segment_levels
from trainer.data.profiles.value_area import EDGE, Integers, grow, peak

MANY_ROWS = 400  # of a session, from which zones are faster
TILE_CELLS = 500_000  # 4 MB, a processor's cache; profiles are grown a tile at a time


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Consecutive profiles of one session: `table` (bars, PAD + rows + PAD), whose column PAD is row `first`.

    `low` and `high` are the ends of each profile's range, as columns; `total` is its volume. Where there is
    a `store`, the table is in it, and the tiles of one value area pass are in it one after the other.
    """

    table: Integers
    first: int
    low: Integers
    high: Integers
    total: Integers


@dataclass(kw_only=True)
class Store:
    """Memory that one tile after the other is made in: fresh memory costs more than the sums made in it."""

    cells: Integers
    used: int = 0

    def table(self, bars: int, columns: int) -> Integers:
        """Return an empty table, behind those handed out since `used` was last zero."""
        end = self.used + bars * columns
        if end > len(self.cells):
            self.cells = np.concatenate([self.cells[: self.used], np.empty(end - self.used, np.int64)])
        table = self.cells[self.used : end].reshape(bars, columns)
        table.fill(0)
        self.used = end
        return table


def developing_levels(bars: BarRows, starts: Integers, conventions: ProfileConventions) -> Levels:
    """Return, for each bar, the levels of its session's profile up to and including it.

    Whole numbers, so the compiled loop and numpy give the same levels.

    Args:
        starts: index of each session's first bar, (sessions,), ascending from 0.
    """
    if conventions.rows == "dense" and conventions.expansion == "one" and (loop := loop_for(len(bars))):
        return compiled_levels(bars, starts, conventions, loop)
    return numpy_levels(bars, starts, conventions)


def numpy_levels(bars: BarRows, starts: Integers, conventions: ProfileConventions) -> Levels:
    """Return what `developing_levels` does, without a compiler. Where sessions have many rows, zones are faster.

    Args:
        starts: index of each session's first bar, (sessions,), ascending from 0.
    """
    rows = np.maximum.reduceat(bars.high, starts) - np.minimum.reduceat(bars.low, starts) + 1
    if conventions.rows == "dense" and conventions.expansion == "one" and int(rows.max()) > MANY_ROWS:
        return segment_levels(bars, starts, conventions)
    store = Store(cells=np.empty(2 * TILE_CELLS, np.int64))
    return _levels_of(_tiles(bars, starts, store), store, conventions)


def session_tiles(bars: BarRows, starts: Integers) -> Iterator[Tile]:
    """Yield the growing profiles of all sessions; a tile is overwritten when the next one is asked for."""
    store = Store(cells=np.empty(2 * TILE_CELLS, np.int64))
    for tile in _tiles(bars, starts, store):
        yield tile
        store.used = 0


def _tiles(bars: BarRows, starts: Integers, store: Store) -> Iterator[Tile]:
    ends = np.append(starts[1:], len(bars))
    return (tile for a, b in zip(starts, ends, strict=True) for tile in _session_tiles(bars[a:b], store))


def _session_tiles(bars: BarRows, store: Store) -> Iterator[Tile]:
    """Yield the growing profiles of one session; the range of a profile is what was traded so far."""
    first, rows = int(bars.low.min()), int(bars.high.max() - bars.low.min()) + 1
    require_rows(rows)
    low, high = np.minimum.accumulate(bars.low), np.maximum.accumulate(bars.high)
    total = np.cumsum(bars.volume)
    carried = np.zeros(rows + 2 * PAD, np.int64)
    step = max(1, TILE_CELLS // len(carried))
    for begin in range(0, len(bars), step):
        part = slice(begin, min(begin + step, len(bars)))
        table = _add_shares(bars[part], first, store.table(part.stop - begin, len(carried)))
        table[0] += carried
        np.cumsum(table, axis=0, out=table)
        carried = table[-1].copy()
        shift = PAD - first
        yield Tile(table=table, first=first, low=low[part] + shift, high=high[part] + shift, total=total[part])


def _add_shares(bars: BarRows, first: int, table: Integers) -> Integers:
    """Write each bar's own profile to its line of the empty `table` (bars, columns), and return it."""
    rows = bars.high - bars.low + 1
    begin = np.arange(len(bars)) * table.shape[1] + (bars.low - first + PAD)
    bar_begin = np.cumsum(rows) - rows  # of each bar in the list of all touched cells
    cells = np.repeat(begin - bar_begin, rows) + np.arange(int(rows.sum()))
    flat = table.reshape(-1)
    flat[cells] = np.repeat(bars.share, rows)
    flat[begin] += bars.more_low
    flat[begin + rows - 1] += bars.more_high
    return table


def _levels_of(tiles: Iterator[Tile], store: Store, conventions: ProfileConventions) -> Levels:
    """Grow the value areas of several tiles at once: more profiles a step, fewer steps."""
    found: list[Levels] = []
    waiting: list[Tile] = []
    for tile in tiles:
        waiting.append(tile)
        if store.used >= TILE_CELLS:
            found.append(_levels_of_tiles(waiting, store, conventions))
            waiting, store.used = [], 0
    if waiting:
        found.append(_levels_of_tiles(waiting, store, conventions))
    return Levels(**{f.name: np.concatenate([getattr(part, f.name) for part in found]) for f in fields(Levels)})


def _levels_of_tiles(tiles: list[Tile], store: Store, conventions: ProfileConventions) -> Levels:
    if conventions.rows == "occupied":
        packed, columns = zip(*map(_without_gaps, tiles), strict=True)
        flat = np.concatenate([tile.table.ravel() for tile in packed])
        return _unpacked(_levels_of_dense(list(packed), flat, conventions), tiles, list(columns))
    return _levels_of_dense(tiles, store.cells, conventions)


def _levels_of_dense(tiles: list[Tile], flat: Integers, conventions: ProfileConventions) -> Levels:
    """Return the levels of all profiles in `tiles`, whose tables lie in `flat` in this order."""
    poc = np.concatenate([peak(tile.table, tile.low, tile.high, conventions) for tile in tiles])
    low, high, total = (np.concatenate([getattr(tile, name) for tile in tiles]) for name in ("low", "high", "total"))
    origin = np.concatenate(_origins(tiles))  # of each profile in `flat`
    shift = np.repeat([tile.first - PAD for tile in tiles], [len(tile.table) for tile in tiles]) - origin
    flat[origin + low - 1] = flat[origin + high + 1] = EDGE
    place = poc + origin
    bottom, top = grow(flat, place, total, conventions)
    return Levels(poc=place + shift, high=top + shift, low=bottom + shift, peak=flat[place], total=total)


def _origins(tiles: list[Tile]) -> list[Integers]:
    sizes = np.cumsum([0, *(tile.table.size for tile in tiles)])
    return [
        begin + np.arange(len(tile.table)) * tile.table.shape[1]
        for begin, tile in zip(sizes[:-1].tolist(), tiles, strict=True)
    ]


def _without_gaps(tile: Tile) -> tuple[Tile, Integers]:
    """Return the profiles with their empty rows taken out, and the old column of each new one."""
    occupied = tile.table > 0
    occupied[np.arange(len(occupied)), tile.low] |= ~occupied.any(axis=1)
    bar, column = np.nonzero(occupied)
    count = occupied.sum(axis=1)
    new = np.arange(len(bar)) - np.repeat(np.cumsum(count) - count, count) + PAD
    table, back = np.zeros_like(tile.table), np.zeros_like(tile.table)
    table[bar, new], back[bar, new] = tile.table[bar, column], column
    low = np.full(len(table), PAD)
    return Tile(table=table, first=PAD, low=low, high=low + count - 1, total=tile.total), back


def _unpacked(levels: Levels, tiles: list[Tile], columns: list[Integers]) -> Levels:
    """Return `levels` of packed profiles in the rows of the unpacked ones."""
    ends = np.cumsum([len(tile.table) for tile in tiles])[:-1]
    parts: dict[str, list[Integers]] = {"poc": [], "high": [], "low": []}
    for name, found in parts.items():
        for rows, tile, back in zip(np.split(getattr(levels, name), ends), tiles, columns, strict=True):
            found.append(back[np.arange(len(rows)), rows] + tile.first - PAD)
    return Levels(
        **{name: np.concatenate(found) for name, found in parts.items()}, peak=levels.peak, total=levels.total
    )
