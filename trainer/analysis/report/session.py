"""The volume profile of one session, under the conventions that the run recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainer.analysis.bar_inputs import NewBars, open_bars, settings_of
from trainer.data.bar import Bars, Floats, joined
from trainer.data.profiles.profile import bar_rows, difference_profile, level, row_centre, session_levels
from trainer.data.sessions import session_clock
from trainer.tasks.records.row_schema import Metadata


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The last session of the data: price and volume of each row, (rows,), lowest first, and the levels' prices."""

    day: str
    bars: int
    price: Floats
    volume: Floats
    poc: float
    value_high: float
    value_low: float


def last_profile(metadata: Metadata, data: Path) -> Profile | None:
    """Return the profile of the last session at `data`, None where no bar is within one."""
    settings = settings_of(metadata)
    day, bars = _last_session(metadata, data)
    if bars is None:
        return None
    conventions = settings.profile
    rows = bar_rows(bars.low, bars.high, bars.close, bars.volume, conventions)
    first, count = int(rows.low.min()), int(rows.high.max() - rows.low.min()) + 1
    levels = session_levels(rows, np.zeros(1, np.int64), conventions)

    def price(places: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
        return row_centre(places, conventions) * conventions.tick

    return Profile(
        day=str(day),
        bars=len(bars),
        price=price(first + np.arange(count)),
        volume=difference_profile(rows, first, count) / 2.0**conventions.volume_bits,
        poc=float(level(levels.poc, "poc", conventions)[0]) * conventions.tick,
        value_high=float(level(levels.high, "high", conventions)[0]) * conventions.tick,
        value_low=float(level(levels.low, "low", conventions)[0]) * conventions.tick,
    )


def _last_session(metadata: Metadata, data: Path) -> tuple[np.datetime64 | None, Bars | None]:
    """Return day and bars of the last session, reading chunk by chunk."""
    settings = settings_of(metadata)
    day: np.datetime64 | None = None
    parts: list[Bars] = []
    for chunk in open_bars(metadata, NewBars(data=data)).chunks():
        clock = session_clock(chunk.date, settings.sessions, settings.spacing)
        if not clock.inside.any():
            continue
        last = clock.day[clock.inside][-1]
        parts = [*(parts if last == day else []), chunk.where(clock.inside & (clock.day == last))]
        day = last
    return day, joined(parts) if parts else None
