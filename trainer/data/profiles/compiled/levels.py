"""Levels of growing profiles by the loop of levels.c: a bar costs its segments, however wide the range of prices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.finished import doubled_middle
from trainer.data.profiles.profile import BarRows, Levels, require_rows
from trainer.data.profiles.value_area import Integers, required
from trainer.data.profiles.zones import changes

FEW_ROWS = 4  # a bar: up to here each row is a segment, which needs no sorting


def compiled_levels(
    bars: BarRows, starts: Integers, conventions: ProfileConventions, loop: Callable[..., None]
) -> Levels:
    """Return, for each bar, the levels of its session's profile up to and including it.

    Args:
        starts: index of each session's first bar, (sessions,), ascending from 0.
        loop: the function of levels.c.
    """
    ends = bool(bars.more_low.any() or bars.more_high.any())
    low, high, total = (np.empty(len(bars), np.int64) for _ in range(3))
    stops = [*starts[1:].tolist(), len(bars)]
    parts = [slice(begin, end) for begin, end in zip(starts.tolist(), stops, strict=True)]
    volume = bars.volume
    for part in parts:
        np.minimum.accumulate(bars.low[part], out=low[part])
        np.maximum.accumulate(bars.high[part], out=high[part])
        np.cumsum(volume[part], out=total[part])
        require_rows(int(high[part.stop - 1] - low[part.stop - 1]) + 1)
    twice, need = doubled_middle(low, high, conventions), np.minimum(required(total, conventions), total)
    columns = [np.ascontiguousarray(each) for each in (bars.share, bars.more_low, bars.more_high, twice, need)]
    found = np.empty((len(bars), 4), np.int64)
    for part in parts:
        _session(bars[part], [each[part] for each in columns], found[part], loop, ends, conventions.value_tie == "up")
    poc, top, bottom, peak = np.ascontiguousarray(found.T)
    return Levels(poc=poc, high=top, low=bottom, peak=peak, total=total)


def _session(
    bars: BarRows, columns: list[Integers], found: Integers, loop: Callable[..., None], ends: bool, up_first: bool
) -> None:
    """Write point of control, top, bottom and peak of one session's profiles to `found` (bars, 4).

    columns: share, more_low, more_high, twice the row that a tie wants, and needed volume of each bar.
    """
    edges, first, above = _segments(bars, ends)
    share, more_low, more_high, twice, need = columns
    volume = np.zeros(len(edges), np.int64)
    given = [first, above, share, more_low, more_high, edges, volume, twice, need]
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in given]
    count = ctypes.c_int64(len(bars))
    loop(count, *pointers, ctypes.c_int64(up_first), ctypes.c_void_p(found.ctypes.data))


def _segments(bars: BarRows, ends: bool) -> tuple[Integers, Integers, Integers]:
    """Return the segments' lowest rows and the one above the last, and each bar's first segment and that above it."""
    lowest, highest = int(bars.low.min()), int(bars.high.max())
    if highest - lowest < FEW_ROWS * len(bars):
        return np.arange(lowest, highest + 2), bars.low - lowest, bars.high + (1 - lowest)
    rows, _ = changes(bars, ends=ends)
    edges, places = np.unique(rows, return_inverse=True)
    first, above = places.reshape(rows.shape)[:2]
    return edges, np.ascontiguousarray(first), np.ascontiguousarray(above)
