"""Value areas of many profiles by binary search: a few dozen reads of a profile, however many rows it has.

Growing an area by its larger neighbour takes rows in the order of a key: the lowest volume between the row and the
point of control, that row included; of equal keys one side comes first, as `value_tie` states. (Behind a thin row the
other side is thinner still, or it would have been taken; so thick rows behind it follow at once.) Keys fall on either
side, so the area is a beginning of two sorted lists merged, and one comparison halves what is open of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.profiles.value_area import Integers
from trainer.data.profiles.zones import Zones

BIG = np.iinfo(np.int64).max
SETTLED = 4  # steps between removals of profiles whose search is over


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What the search reads, flat: of cells their volumes, edges and zones, of (bars, zones) what a bar adds.

    least: (levels, cells) least volume of 2^level cells from each on; below: volume below each cell in the base
    profile. more, key, under: (bars, zones): what each row gets, the least volume between a zone and the point of
    control, and what bars put below row 0 less `more` times a row's number (sums wrap around; differences are right).
    """

    base: Integers
    edges: Integers
    zone: Integers
    least: Integers
    below: Integers
    begin: Integers
    more: Integers
    key: Integers
    under: Integers


@dataclass(frozen=True, kw_only=True)
class Lanes:
    """Profiles to search: cell and row of the point of control, where its line of the tables begins, its span's cells.

    first: first zone of the span; start, stop: its first cell and the one above its last segment.
    """

    tables: Tables
    cell: Integers
    row: Integers
    line: Integers
    first: Integers
    start: Integers
    stop: Integers

    def some(self, lanes: Integers) -> Lanes:
        """Return the profiles with these numbers."""
        names = ("cell", "row", "line", "first", "start", "stop")
        return Lanes(tables=self.tables, **{name: getattr(self, name)[lanes] for name in names})

    @classmethod
    def of(cls, zones: Zones, bars: Integers, cell: Integers, row: Integers) -> Lanes:
        """Return the profiles to search, one for each of `bars`.

        Args:
            bars: numbers of bars within `zones`, (profiles,).
            cell: cell of each profile's point of control, (profiles,).
            row: row of each profile's point of control, (profiles,).
        """
        span = zones.span[bars]
        first, start = zones.first[span], zones.origin[span]
        stop = np.append(zones.origin[1:], len(zones.base))[span] - 1
        tables = _tables(zones, bars, cell)
        line = np.arange(len(bars)) * zones.more.shape[1]
        return cls(tables=tables, cell=cell, row=row, line=line, first=first, start=start, stop=stop)


def _tables(zones: Zones, bars: Integers, cell: Integers) -> Tables:
    below = np.zeros(len(zones.base), np.int64)
    below[1:] = zones.edges[1:] - zones.edges[:-1]  # of a span's last cell it is no height, but its volume is zero
    below[1:] *= zones.base[:-1]
    np.cumsum(below, out=below)
    least = _least(zones)
    more = zones.more if len(bars) == len(zones.more) else zones.more[bars]
    key = _keys(zones, least, more, bars, cell)
    begins = zones.edges[zones.begin[:-1]]
    under = zones.table(begins, 0).take(zones.span[bars], axis=0)
    under[:, 0] *= more[:, 0]
    under[:, 1:] *= more[:, 1:] - more[:, :-1]
    np.cumsum(under, axis=1, out=under)
    return Tables(
        base=zones.base,
        edges=zones.edges,
        zone=zones.zone,
        least=least,
        below=below,
        begin=zones.begin,
        more=more.reshape(-1),
        key=key.reshape(-1),
        under=under.reshape(-1),
    )


def _least(zones: Zones) -> Integers:
    """Return the least volume of 2^level cells from each cell on, (levels, cells), as far as a zone reaches."""
    levels = int(np.diff(zones.begin).max()).bit_length()
    least = np.empty((levels, len(zones.base)), np.int64)
    least[0] = zones.base
    for level in range(1, levels):
        half = 1 << level - 1
        np.minimum(least[level - 1, :-half], least[level - 1, half:], out=least[level, :-half])
        least[level, -half:] = least[level - 1, -half:]
    return least


def _range_least(least: Integers, low: Integers, high: Integers) -> Integers:
    """Return the least volume from cell `low` to cell `high`, which lie in one zone."""
    flat, count = least.reshape(-1), high - low + 1
    level = np.frexp(count.astype(np.float64))[1].astype(np.int64) - 1
    low = level * least.shape[1] + low
    return np.minimum(flat.take(low), flat.take(low + (count - (1 << level))))


def _keys(zones: Zones, least: Integers, more: Integers, bars: Integers, cell: Integers) -> Integers:
    """Return the least volume between each zone and the point of control, whose own zone has BIG, (bars, zones)."""
    lanes, span = np.arange(len(bars)), zones.span[bars]
    own = zones.zone[cell]
    number = zones.first[span] + own
    volume = zones.table(np.minimum.reduceat(zones.base, zones.begin[:-1]), 0).take(span, axis=0)
    volume += more
    places = np.arange(volume.shape[1])
    add = more[lanes, own]
    volume[lanes, own] = _range_least(least, cell, zones.begin[number + 1] - 1) + add
    above = volume.copy()
    np.copyto(above, BIG, where=places < own[:, np.newaxis])
    volume[lanes, own] = _range_least(least, zones.begin[number], cell) + add
    np.copyto(volume, BIG, where=places > own[:, np.newaxis])
    key = np.full_like(volume, BIG)
    np.minimum.accumulate(volume[:, :0:-1], axis=1, out=key[:, -2::-1])
    np.minimum.accumulate(above, axis=1, out=above)
    np.minimum(key[:, 1:], above[:, :-1], out=key[:, 1:])
    return key


@dataclass(kw_only=True)
class Side:
    """What is known of the lists above or below the points of control, (profiles,).

    low, high: the area takes at least `low` and at most `high` segments of the list whole. place: the segment looked
    at, half way between; key: its key; near, far: volume below its end near the point of control, and below the other.
    """

    low: Integers
    high: Integers
    place: Integers
    key: Integers
    near: Integers
    far: Integers


def area(lanes: Lanes, need: Integers, *, up_first: bool) -> tuple[Integers, Integers]:
    """Return lowest and highest row of each area; beyond the range it may hold rows without volume.

    Args:
        need: volume that each area must reach, in units, (profiles,).
        up_first: of equal keys, take the row above the point of control first.
    """
    whole_up, whole_down = np.zeros_like(need), np.zeros_like(need)
    number, left = np.arange(len(need)), lanes
    up, down = _opened(left, lanes.stop - lanes.cell, up=True), _opened(left, lanes.cell - lanes.start + 1, up=False)
    needed = need
    while len(number):
        for _ in range(SETTLED):
            _narrow(left, up, down, needed, up_first)
        whole_up[number], whole_down[number] = up.low, down.low
        keep = np.flatnonzero((up.low < up.high) | (down.low < down.high))
        number, left, needed = number[keep], left.some(keep), needed[keep]
        up, down = (Side(**{name: values[keep] for name, values in vars(side).items()}) for side in (up, down))
    return _ends(lanes, whole_up, whole_down, need, up_first)


def _opened(lanes: Lanes, count: Integers, *, up: bool) -> Side:
    low = np.zeros_like(count)
    place = count >> 1
    key, near, far = _look(lanes, np.full(len(count), up), place)
    return Side(low=low, high=count, place=place, key=key, near=near, far=far)


def _narrow(lanes: Lanes, up: Side, down: Side, need: Integers, up_first: bool) -> None:
    """Compare the segments looked at, and halve what is open of one list, in place.

    Of the two, the one with the higher key is taken first. If it is not enough with all before it and all of the other
    list before the other, the area takes it whole; if it is enough, the other one is not taken.
    """
    first = up.key >= down.key if up_first else up.key > down.key
    less = np.where(first, up.far - down.near, up.near - down.far) < need
    open_up, open_down = up.low < up.high, down.low < down.high
    raise_up, raise_down = first & less & open_up, ~first & less & open_down
    # a list that is no longer open leaves the other to be cut
    cut_up = ~(raise_up | raise_down) & np.where(first, ~(less | open_down), less | open_up)
    cut_down = ~(raise_up | raise_down | cut_up)
    np.copyto(up.low, up.place + 1, where=raise_up)
    np.copyto(down.low, down.place + 1, where=raise_down)
    np.copyto(up.high, up.place, where=cut_up)
    np.copyto(down.high, down.place, where=cut_down)
    upward = raise_up | cut_up
    side = [np.where(upward, getattr(up, name), getattr(down, name)) for name in ("low", "high")]
    place = (side[0] + side[1]) >> 1
    found = (place, *_look(lanes, upward, place))
    for name, values in zip(("place", "key", "near", "far"), found, strict=True):
        np.copyto(getattr(up, name), values, where=upward)
        np.copyto(getattr(down, name), values, where=~upward)


def _look(lanes: Lanes, up: NDArray[np.bool_], place: Integers) -> tuple[Integers, Integers, Integers]:
    """Return key, and volume below the near and the far end, of the segment at `place` of the list above or below."""
    tables = lanes.tables
    cell = np.where(up, lanes.cell + place, lanes.cell - place)
    over = (cell < lanes.start) | (cell >= lanes.stop)  # behind the list's last segment
    np.maximum(cell, lanes.start, out=cell)
    zone = tables.zone.take(cell)
    at = lanes.line + zone
    more, edge = tables.more.take(at), tables.edges.take(cell)
    volume = tables.base.take(cell) + more
    end = tables.edges.take(cell + 1, mode="clip")
    np.copyto(end, edge, where=over)
    inner = np.where(up, np.maximum(edge, lanes.row + 1), np.minimum(end, lanes.row)) - edge
    np.copyto(inner, 0, where=over)
    outer = np.where(up, end - edge, 0)
    below = tables.below.take(cell) + more * edge - tables.under.take(at)
    zone += lanes.first
    anchor = np.clip(lanes.cell, tables.begin.take(zone), tables.begin.take(zone + 1) - 1)
    least = _range_least(tables.least, np.minimum(anchor, cell), np.maximum(anchor, cell)) + more
    key = np.minimum(tables.key.take(at), least)
    np.copyto(key, -1, where=over)
    return key, below + volume * inner, below + volume * outer


def _ends(
    lanes: Lanes, whole_up: Integers, whole_down: Integers, need: Integers, up_first: bool
) -> tuple[Integers, Integers]:
    """Return the ends of areas that take so many segments whole, and as many rows of the next one as they need."""
    everywhere = np.ones(len(need), np.bool_)
    up_key, top, _ = _look(lanes, everywhere, whole_up)
    down_key, bottom, _ = _look(lanes, ~everywhere, whole_down)
    upward = up_key >= down_key if up_first else up_key > down_key
    tables = lanes.tables
    above, below = lanes.cell + whole_up, np.maximum(lanes.cell - whole_down, lanes.start - 1)
    cell = np.where(upward, above, below)
    volume = tables.base.take(cell) + tables.more.take(lanes.line + tables.zone.take(cell))
    rows = -((top - bottom - need) // volume)
    low = np.where(whole_down == 0, lanes.row, tables.edges.take(below + 1))
    high = np.where(whole_up == 0, lanes.row, tables.edges.take(above) - 1)
    return np.where(upward, low, low - rows), np.where(upward, high + rows, high)
