"""What the first bars of a file show: their spacing, the price step, whether there is a VIX.

It is read from a fixed number of rows, so that no chunk size changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from trainer.data.bar import Bars, joined
from trainer.data.readers.bars import Source
from trainer.runtime.errors import TrainerError

ROWS = 10_000
TICKS = tuple(
    step * 10.0**power for power in range(0, -9, -1) for step in (10, 5, 2.5, 2, 1.25, 1) if step * 10.0**power <= 10
) + tuple(0.5**power for power in range(3, 9))  # halves to 1/256, as bonds are quoted
DAILY = 20 * 3600  # seconds between bars from which they are taken for days


@dataclass(frozen=True, kw_only=True)
class Survey:
    """spacing: most frequent step between bars in seconds; tick: None where no usual step fits all prices."""

    spacing: int
    tick: float | None
    vix: bool

    @property
    def daily(self) -> bool:
        """Whether the bars are days or longer."""
        return self.spacing >= DAILY


def survey(source: Source) -> Survey:
    """Look at the first ROWS rows that are sound.

    Raises:
        TrainerError: RM511 where there are fewer than two.
    """
    reading = replace(source.reading, chunk_size=ROWS, on_bad_row="drop")
    scratch = replace(source, reading=reading, bad=replace(source.bad, policy="drop"))
    parts = list(islice(scratch.chunks(), 1))
    if not parts or len(parts[0]) < 2:
        raise TrainerError("RM511", what="the file begins with fewer than two sound bars", where=str(source.path))
    bars = joined(parts)
    steps, counts = np.unique(np.diff(bars.date).astype(np.int64), return_counts=True)
    spacing = int(steps[counts.argmax()])
    return Survey(spacing=spacing, tick=_tick(bars), vix=bars.vix_close is not None)


def _tick(bars: Bars) -> float | None:
    prices = np.unique(np.concatenate([bars.open, bars.high, bars.low, bars.close]))
    fitting = [tick for tick in sorted(TICKS, reverse=True) if not off_tick(prices, tick).any()]
    return fitting[0] if fitting else None


def off_tick(
    prices: np.ndarray[tuple[int, ...], np.dtype[np.float64]], tick: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which prices are no whole number of ticks."""
    steps = prices / tick
    return np.abs(steps - np.rint(steps)) > 1e-6 * np.maximum(1.0, np.abs(steps) * 1e-3)
