"""Microseconds a bar of developing profiles by rows of a session, beside a minimal loop of numba where it is installed.

SYNTHETIC bars, one core, processor time, the best of three. Run: `python -m benchmarks.profile_range`. Results are kept
in benchmarks/results/profile_range.json, with the machine's load: a processor shared with others is slower.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.developing import developing_levels
from trainer.data.profiles.profile import BarRows

CASES = ((390, 100), (390, 500), (390, 2_500), (390, 45_000), (1440, 500), (1440, 45_000))  # bars, about rows
SESSIONS = 16
RESULTS = Path(__file__).parent / "results" / "profile_range.json"


def bars_of(bars: int, rows: int) -> tuple[BarRows, np.ndarray[Any, Any]]:
    """Return SYNTHETIC bars of SESSIONS sessions and where these begin."""
    rng = np.random.default_rng(bars + rows)
    step, count = rows / np.sqrt(bars) / 1.6, bars * SESSIONS
    close = np.rint(np.cumsum(rng.normal(0, step, count))).astype(np.int64)
    down, up = (np.rint(np.abs(rng.normal(0, step, count))).astype(np.int64) for _ in range(2))
    none = np.zeros(count, np.int64)
    share = (rng.integers(1, 2000, count) << 20) // (up + down + 1)
    rows_of = BarRows(low=close - down, high=close + up, share=share, more_low=none, more_high=none)
    return rows_of, np.arange(SESSIONS) * bars


def compiled(low: Any, high: Any, share: Any, starts: Any) -> Any:
    """Return POC and value area of each bar: the plainest loop, ties to the lowest row; numba compiles it."""
    found = np.empty((len(low), 3), np.int64)
    for session in range(len(starts)):
        begin = starts[session]
        end = starts[session + 1] if session + 1 < len(starts) else len(low)
        first = low[begin:end].min()
        volume = np.zeros(high[begin:end].max() - first + 1, np.int64)
        for bar in range(begin, end):
            volume[low[bar] - first : high[bar] - first + 1] += share[bar]
            poc = volume.argmax()
            bottom, top, inside, need = poc, poc, volume[poc], volume.sum() * 7 // 10
            while inside < need:
                up = volume[top + 1] if top + 1 < len(volume) else -1
                down = volume[bottom - 1] if bottom > 0 else -1
                if up >= down:
                    top, inside = top + 1, inside + up
                else:
                    bottom, inside = bottom - 1, inside + down
            found[bar] = poc + first, top + first, bottom + first
    return found


def best(run: Callable[[], object]) -> float:
    """Return the least processor time of three runs in seconds."""
    times = []
    for _ in range(3):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    """Print one line a case."""
    try:
        loop = importlib.import_module("numba").njit(compiled)
    except ImportError:
        loop = None
        print("numba is not installed here: its column is empty")
    print("bars  rows    us/bar  numba us/bar")
    cases = []
    for bars, rows in CASES:
        made, starts = bars_of(bars, rows)
        ends = [*starts[1:], len(made)]
        spans = [int(made.high[a:b].max() - made.low[a:b].min()) + 1 for a, b in zip(starts, ends, strict=True)]
        ours = best(lambda made=made, starts=starts: developing_levels(made, starts, ProfileConventions()))  # type: ignore[misc]
        theirs = ""
        case: dict[str, float] = {"bars_a_session": bars, "rows_a_session": round(float(np.mean(spans)))}
        case["microseconds_a_bar"] = round(ours / len(made) * 1e6, 2)
        if loop is not None:
            arguments = made.low, made.high, made.share, starts
            theirs = f"{best(lambda arguments=arguments: loop(*arguments)) / len(made) * 1e6:.2f}"  # type: ignore[misc]
            case["numba_microseconds_a_bar"] = float(theirs)
        cases.append(case)
        print(f"{bars:>4} {np.mean(spans):>6.0f} {ours / len(made) * 1e6:>8.2f}  {theirs}")
    said = {"data": "SYNTHETIC", "processors": os.cpu_count(), "load_average": os.getloadavg(), "cases": cases}
    RESULTS.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
