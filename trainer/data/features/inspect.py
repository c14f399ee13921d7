"""Inspection of a file's first bars: their spacing, the price step, whether there is a VIX.

It is read from a fixed number of rows, so that no chunk size changes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from trainer.data.bar import Bars, Floats, joined
from trainer.data.conventions import VOLUME_BITS
from trainer.data.readers.bars import Source
from trainer.data.ticks import off_tick
from trainer.runtime.errors import TrainerError

ROWS = 10_000
TICKS = tuple(
    step * 10.0**power for power in range(0, -9, -1) for step in (10, 5, 2.5, 2, 1.25, 1) if step * 10.0**power <= 10
) + tuple(0.5**power for power in range(3, 9))  # halves to 1/256, as bonds are quoted
HEADROOM = 12  # bits: profiles may hold 4,096 times the volume of the first ROWS bars
FINEST = 40
FIRST_WEEKDAY, SATURDAY = 3, 5  # 1970-01-01 was a Thursday, counted from Monday as 0
DAILY = 20 * 3600  # seconds between bars from which they are taken for days


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """spacing: most frequent step between bars in seconds; tick: None where no usual step fits all prices.

    volume_bits: how finely volume has to be counted. day_ticks: usual range of a day in ticks, 0 where unknown.
    weekend: some bars are of the middle of a Saturday, as of coins.
    """

    spacing: int
    tick: float | None
    vix: bool
    volume_bits: int = VOLUME_BITS
    day_ticks: int = 0
    weekend: bool = False

    @property
    def daily(self) -> bool:
        """Whether the bars are days or longer."""
        return self.spacing >= DAILY


def inspect_data(source: Source) -> DataSummary:
    """Look at the first ROWS rows that are sound.

    Raises:
        TrainerError: RM511 where there are fewer than two.
    """
    reading = replace(source.reading, chunk_size=ROWS, on_bad_row="drop")
    scratch = replace(source, reading=reading, bad=replace(source.bad, policy="drop"))
    parts = list(islice(scratch.chunks(), 1))
    if not parts or len(parts[0]) < 2:
        for _ in source.chunks():  # where rows are refused, the first of them is the better answer
            pass
        raise TrainerError("RM511", what="the file begins with fewer than two sound bars", where=str(source.path))
    bars = joined(parts)
    steps, counts = np.unique(np.diff(bars.date).astype(np.int64), return_counts=True)
    spacing = int(steps[counts.argmax()])
    vix, bits = bars.vix_close is not None, volume_bits(bars.volume)
    tick = _tick(bars)
    ticks, weekend = _day_ticks(bars, tick), _on_saturday(bars)
    return DataSummary(spacing=spacing, tick=tick, vix=vix, volume_bits=bits, day_ticks=ticks, weekend=weekend)


def _on_saturday(bars: Bars) -> bool:
    """Return whether a bar is of a Saturday's middle twelve hours in UTC, a weekend in every zone from -6 to +6."""
    hour = bars.date.astype("M8[h]").astype(np.int64)
    day = (hour // 24 + FIRST_WEEKDAY) % 7
    return bool(((day == SATURDAY) & (hour % 24 >= 6) & (hour % 24 < 18)).any())


def _day_ticks(bars: Bars, tick: float | None) -> int:
    """Return the median range of the days (UTC) in ticks."""
    if tick is None:
        return 0
    _, starts = np.unique(bars.date.astype("M8[D]"), return_index=True)
    ranges = np.maximum.reduceat(bars.high, starts) - np.minimum.reduceat(bars.low, starts)
    return round(float(np.median(ranges)) / tick)


def volume_bits(volume: Floats) -> int:
    """Return the fineness in which `volume` is counted: of whole numbers the usual one, of others as fine as fits.

    A bar of 0.01 coins over 6,000 rows would lose half of its volume in the units of whole contracts. HEADROOM times
    the volume of the first bars fits into 64 bits.
    """
    if (volume == np.rint(volume)).all():
        return VOLUME_BITS
    fits = 61 - HEADROOM - math.ceil(math.log2(max(1.0, float(volume.sum()))))
    return max(VOLUME_BITS, min(FINEST, fits))


def _tick(bars: Bars) -> float | None:
    prices = np.unique(np.concatenate([bars.open, bars.high, bars.low, bars.close]))
    fitting = [tick for tick in sorted(TICKS, reverse=True) if not off_tick(prices, tick).any()]
    return fitting[0] if fitting else None
