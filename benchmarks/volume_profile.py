"""Levels of volume profiles against the package MarketProfile 0.2.0: the same SYNTHETIC bars, one run, its conventions.

    python -m benchmarks.volume_profile [--sessions 300]

Finished profiles: one a session, both ways. Developing profiles: one a bar; theirs is computed anew for each bar,
as the package offers nothing else, so only for a few sessions. Raw results: benchmarks/results/volume_profile.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from market_profile import MarketProfile

from tests.fixtures.synthetic_bars import synthetic_bars
from trainer.data.bar import Bars
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.developing import developing_levels
from trainer.data.profiles.profile import Levels, bar_rows, row_centre, session_levels

RESULTS = Path(__file__).parent / "results" / "volume_profile.json"
THEIRS = ProfileConventions(
    tick=0.25, allocation="close", rounding="ceil", rows="occupied", poc_tie="middle_upper", reach="more"
)


def main() -> None:
    """Compute both, compare every value, and write rates and differences."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sessions", type=int, default=300)
    arguments.add_argument("--developing", type=int, default=3, help="sessions whose every bar is compared")
    options = arguments.parse_args()
    bars = synthetic_bars(388 * options.sessions)
    days = bars.date.astype("M8[D]")
    starts = np.flatnonzero(np.concatenate([[True], days[1:] != days[:-1]]))
    few = bars[: int(starts[options.developing])]
    record = {
        "data": f"synthetic: {len(bars):,} seeded minute bars, {len(starts)} sessions",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, shared with other work; one thread each",
        "load_average": os.getloadavg(),
        "conventions": THEIRS.as_dict(),
        "finished": compared(finished(bars, starts), finished_theirs(bars, starts)),
        "developing": compared(
            growing(few, starts[: options.developing]), growing_theirs(few, starts[: options.developing])
        ),
        "developing_all": {"profiles_per_second": round(growing(bars, starts)[1])},
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


def compared(ours: tuple[np.ndarray[Any, Any], float], theirs: tuple[np.ndarray[Any, Any], float]) -> dict[str, Any]:
    """Return rates, their ratio, and how many values differ."""
    return {
        "profiles": len(ours[0]),
        "ours_per_second": round(ours[1]),
        "marketprofile_per_second": round(theirs[1], 1),
        "times": round(ours[1] / theirs[1]),
        "values": int(ours[0].size),
        "values_that_differ": int((ours[0] != theirs[0]).sum()),
    }


def prices(levels: Levels) -> np.ndarray[Any, Any]:
    """Return POC, value area high and low in currency, shape (profiles, 3)."""
    rows = np.stack([levels.poc, levels.high, levels.low], axis=1)
    return np.asarray(row_centre(rows, THEIRS) * THEIRS.tick)


def finished(bars: Bars, starts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Return the levels of all sessions and how many a second, from float prices on."""
    began = time.perf_counter()
    levels = session_levels(bar_rows(bars.low, bars.high, bars.close, bars.volume, THEIRS), starts, THEIRS)
    return prices(levels), len(starts) / (time.perf_counter() - began)


def growing(bars: Bars, starts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Return the levels at every bar and how many a second."""
    began = time.perf_counter()
    levels = developing_levels(bar_rows(bars.low, bars.high, bars.close, bars.volume, THEIRS), starts, THEIRS)
    return prices(levels), len(bars) / (time.perf_counter() - began)


def frame_of(bars: Bars) -> pd.DataFrame:
    """Return the bars as their package wants them."""
    columns = {name.title(): getattr(bars, name) for name in ("open", "high", "low", "close", "volume")}
    return pd.DataFrame(columns, index=pd.DatetimeIndex(bars.date))


def their_levels(profile: MarketProfile, first: Any, last: Any) -> tuple[float, float, float]:
    """Return POC, value area high and low of one slice."""
    found = profile[first:last]
    low, high = found.value_area
    return found.poc_price, high, low


def finished_theirs(bars: Bars, starts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Return their levels of all sessions and how many a second."""
    frame = frame_of(bars)
    ends = np.append(starts[1:], len(bars)) - 1
    began = time.perf_counter()
    profile = MarketProfile(frame, tick_size=THEIRS.tick)
    levels = [their_levels(profile, frame.index[a], frame.index[b]) for a, b in zip(starts, ends, strict=True)]
    return np.array(levels), len(starts) / (time.perf_counter() - began)


def growing_theirs(bars: Bars, starts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Return their levels at every bar and how many a second."""
    frame = frame_of(bars)
    first = np.repeat(starts, np.diff(np.append(starts, len(bars))))
    began = time.perf_counter()
    profile = MarketProfile(frame, tick_size=THEIRS.tick)
    levels = [their_levels(profile, frame.index[a], frame.index[b]) for b, a in enumerate(first)]
    return np.array(levels), len(bars) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
