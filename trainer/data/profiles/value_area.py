"""Point of control and value area of many profiles at once.

Profiles lie in one flat array of integers. Each is a run of rows with a cell below it and one above it
that hold -1; two further cells at either end of the array can be read but never count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainer.data.conventions import ProfileConventions

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

EDGE = -1  # below every volume, so that the other side is taken
COMPRESS_EVERY = 6  # steps between removals of finished profiles: removing costs about as much as a step


def required(total: Integers, conventions: ProfileConventions) -> Integers:
    """Return the volume a value area must reach; whole numbers, so that no rounding decides."""
    whole, rest = np.divmod(total, 10_000)
    product = rest * conventions.value_share
    more = product // 10_000 + 1 if conventions.reach == "more" else -(-product // 10_000)
    return np.asarray(whole * conventions.value_share + more)


def grow(flat: Integers, poc: Integers, total: Integers, conventions: ProfileConventions) -> tuple[Integers, Integers]:
    """Grow from `poc` until the area holds its share of `total`; return lowest and highest row.

    All three are positions in `flat`, shape (profiles,). Where the required volume cannot be reached
    (a share of all, and more than that), the area is the whole profile.

    Args:
        flat: volumes of all profiles, one after the other, shape (cells,).
        poc: place of each point of control in `flat`, shape (profiles,).
        total: volume of each profile, shape (profiles,).
    """
    need = np.minimum(required(total, conventions), total)
    low, high = poc.copy(), poc.copy()
    step = _grow_by_two if conventions.expansion == "two" else _grow_by_one
    volume = flat.take(poc)
    lanes = np.flatnonzero(volume < need)
    below, above, volume, need = low[lanes] - 1, high[lanes] + 1, volume[lanes], need[lanes]
    while len(lanes):
        for _ in range(COMPRESS_EVERY):
            step(flat, below, above, volume, need, conventions.value_tie == "up")
        low[lanes], high[lanes] = below + 1, above - 1
        keep = volume < need
        lanes, below, above, volume, need = lanes[keep], below[keep], above[keep], volume[keep], need[keep]
    return low, high


def _grow_by_one(
    flat: Integers, below: Integers, above: Integers, volume: Integers, need: Integers, up_first: bool
) -> None:
    """Take the larger neighbour of every unfinished area, in place."""
    down, up = flat.take(below), flat.take(above)
    growing = volume < need
    upward = (up >= down if up_first else up > down) & growing
    volume += np.maximum(up, down) * growing
    above += upward
    below -= growing & ~upward


def _grow_by_two(
    flat: Integers, below: Integers, above: Integers, volume: Integers, need: Integers, up_first: bool
) -> None:
    """Take the larger pair of neighbours of every unfinished area, in place; at an edge a pair may be one row."""
    down, below_steps = _pair(flat, below, -1)
    up, above_steps = _pair(flat, above, 1)
    growing = volume < need
    upward = (up >= down if up_first else up > down) & growing
    downward = growing & ~upward
    volume += np.maximum(up, down) * growing
    above += above_steps * upward
    below -= below_steps * downward


def _pair(flat: Integers, place: Integers, direction: int) -> tuple[Integers, Integers]:
    near = flat.take(place)
    far = flat.take(np.where(near == EDGE, place, place + direction))
    return near + np.maximum(far, 0), 1 + (far != EDGE)


def peak(table: Integers, first: Integers, last: Integers, conventions: ProfileConventions) -> Integers:
    """Return the column of each row's point of control; `first` and `last` are the ends of its range.

    `table` is (profiles, columns); it is written to and restored. The tie rule looks at the range, not at
    the table's ends.

    Args:
        table: volumes, shape (profiles, columns).
        first: lowest column of each profile, shape (profiles,).
        last: highest column of each profile, shape (profiles,).
    """
    found: Integers = table.argmax(axis=1)
    bars = np.arange(len(table))
    highest = table[bars, found]
    table[bars, found] -= 1  # so that a second search finds another row as high, if there is one
    tied = np.flatnonzero(table[bars, table.argmax(axis=1)] == highest)
    table[bars, found] = highest
    if len(tied) and conventions.poc_tie != "low":
        found[tied] = _chosen(table[tied], first[tied], last[tied], conventions)
    empty = highest == 0  # then cells outside the range are as high as those inside
    return np.where(empty, np.clip(found, first, last), found)


def _chosen(table: Integers, first: Integers, last: Integers, conventions: ProfileConventions) -> Integers:
    if conventions.poc_tie == "high":
        return np.asarray(table.shape[1] - 1 - table[:, ::-1].argmax(axis=1))
    return _nearest_middle(table, first, last, conventions)


def _nearest_middle(table: Integers, first: Integers, last: Integers, conventions: ProfileConventions) -> Integers:
    twice_middle = first + last + (conventions.poc_tie == "middle_upper")  # twice, to stay with whole numbers
    distance = np.abs(2 * np.arange(table.shape[1]) - twice_middle[:, np.newaxis])
    distance[table != table.max(axis=1, keepdims=True)] = np.iinfo(np.int64).max
    return np.asarray(distance.argmin(axis=1))
