"""Growing profiles in two levels: a base profile before each span of bars, and zones within which its bars add alike.

A segment is a run of rows in which no bar of the session so far begins or ends, so its rows have one volume. A zone is
a run of segments in which no bar of one span begins or ends: each bar of the span gives every row of it the same. So
the base profile is kept once a span, (segments,), and what the bars add, (bars, zones). With spans of about the square
root of the bars, a bar costs that many numbers, whatever the range of prices. Whole numbers again: no cut into spans,
pieces or batches changes a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from trainer.data.profiles.profile import BarRows, require_rows
from trainer.data.profiles.value_area import Integers

BATCH_CELLS = 150_000  # of base profiles that are worked on at once: an array operation has a price of its own
LEAST_SPAN = 12  # bars


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Consecutive spans of one session.

    edges: lowest row of each segment so far, and of the empty one above the last, (segments,); base: volume of a row
    before each span (spans, segments); columns, amounts: by how much a bar's volume changes and from
    which segment on, (changes, bars). low, high, total: range and volume of each bar's profile.
    """

    edges: Integers
    base: Integers
    low: Integers
    high: Integers
    total: Integers
    columns: Integers
    amounts: Integers


@dataclass(frozen=True, kw_only=True)
class Zones:
    """Pieces one after the other; a cell is a segment of a span. All arrays but `more` are flat.

    base: volume of a row of each cell; edges: its lowest row; zone: its zone's number in its span. begin: first cell of
    each zone, and behind the last one the number of cells. first: first zone of each span; origin: first cell of each
    span; span: of each bar; more: what the span's bars so far gave each row of a zone (bars, widest span).
    """

    base: Integers
    edges: Integers
    zone: Integers
    begin: Integers
    first: Integers
    origin: Integers
    span: Integers
    more: Integers

    def table(self, values: Integers, fill: int) -> Integers:
        """Return `values` of zones as (spans, widest span), `fill` behind a span's last zone."""
        table = np.full((len(self.first), self.more.shape[1]), fill)
        counts = np.diff(self.first, append=len(values))
        table[np.arange(table.shape[1]) < counts[:, np.newaxis]] = values
        return table


def pieces(bars: BarRows, span: int, *, ends: bool) -> Iterator[Piece]:
    """Yield one session, cut so that no piece has many more than BATCH_CELLS cells.

    Args:
        span: bars that share a base profile, 1 or more; a piece holds a whole number of spans, the last one may be
            shorter.
        ends: whether some bar of the file's block gives its lowest and highest row a share of their own.
    """
    low, high, total = np.minimum.accumulate(bars.low), np.maximum.accumulate(bars.high), np.cumsum(bars.volume)
    require_rows(int(high[-1] - low[-1]) + 1)
    rows, amounts = changes(bars, ends=ends)
    edges, places = np.unique(rows, return_inverse=True)
    columns, count = places.reshape(rows.shape), len(bars)
    step = span * max(1, BATCH_CELLS // len(edges))
    known, carried = np.zeros(len(edges), np.bool_), np.zeros(len(edges), np.int64)
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        known[columns[:, part]] = True
        here = np.flatnonzero(known)
        mine = (np.cumsum(known) - 1)[columns[:, part]]
        base = _base(mine, amounts[:, part], carried[here], span)
        yield Piece(
            edges=edges[here],
            base=base[:-1],
            low=low[part],
            high=high[part],
            total=total[part],
            columns=mine,
            amounts=amounts[:, part],
        )
        if begin + step < count:  # later edges cut segments of this piece in two
            carried = base[-1][np.maximum(np.cumsum(known) - 1, 0)]
            carried[: here[0]] = 0


def changes(bars: BarRows, *, ends: bool) -> tuple[Integers, Integers]:
    """Return the rows from which on a bar's volume of a row changes, and by how much, each (changes, bars).

    ends: whether some bar of the file's block gives its lowest and highest row a share of their own.
    """
    rows, amounts = [bars.low, bars.high + 1], [bars.share + bars.more_low, -(bars.share + bars.more_high)]
    if ends:
        rows += [bars.low + 1, bars.high]
        amounts += [-bars.more_low, bars.more_high]
    return np.stack(rows), np.stack(amounts)


def _base(columns: Integers, amounts: Integers, carried: Integers, span: int) -> Integers:
    """Return the profile before each span and behind the last, (spans + 1, segments)."""
    count, width = columns.shape[1], len(carried)
    after = np.arange(count) // span + 1
    base = np.zeros((int(after[-1]) + 1, width), np.int64)
    np.add.at(base.reshape(-1), columns + after * width, amounts)
    np.cumsum(base.reshape(-1), out=base.reshape(-1))  # a line's changes add up to zero, so lines do not touch
    base[0] = carried
    for line in range(1, len(base)):  # line by line: a third of the time of numpy's sum down the columns
        base[line] += base[line - 1]
    return base


def zones_of(parts: Sequence[Piece], span: int) -> Zones:
    """Return the zones of all spans of `parts`."""
    widths = np.repeat([len(part.edges) for part in parts], [len(part.base) for part in parts])
    origin = np.cumsum(widths) - widths
    spans = np.cumsum([0, *(len(part.base) for part in parts)])
    counts = [len(part.total) for part in parts]
    place = np.concatenate([np.arange(count) for count in counts])
    own, slot = np.repeat(spans[:-1], counts) + place // span, place % span
    cells = np.concatenate([part.columns for part in parts], axis=1) + origin[own]
    mark = np.zeros(int(widths.sum()), np.bool_)
    mark[cells] = mark[origin] = True
    begin = np.flatnonzero(mark)
    number = np.cumsum(mark, dtype=np.int64)
    number -= 1
    first = number[origin]
    width = int(np.diff(first, append=len(begin)).max())
    zone = number - np.repeat(first, widths)
    table = np.zeros((len(origin), span, width), np.int64)
    place = (own * span + slot) * width + zone[cells]
    np.add.at(table.reshape(-1), place, np.concatenate([part.amounts for part in parts], axis=1))
    np.cumsum(table.reshape(-1), out=table.reshape(-1))
    for bar in range(1, span):
        table[:, bar] += table[:, bar - 1]
    return Zones(
        base=np.concatenate([part.base.reshape(-1) for part in parts]),
        edges=np.concatenate([np.tile(part.edges, len(part.base)) for part in parts]),
        zone=zone,
        begin=np.append(begin, len(mark)),
        first=first,
        origin=origin,
        span=own,
        more=table.reshape(-1, width)[own * span + slot],
    )


def span_of(bars: int) -> int:
    """Return how many bars a span has in sessions of `bars` bars."""
    return max(LEAST_SPAN, isqrt(bars))
