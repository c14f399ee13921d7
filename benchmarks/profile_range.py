"""Microseconds a bar of developing profiles by rows of a session, next to a minimal loop of numba.

SYNTHETIC bars, one core, processor time, the best of seven. `compiled` is the loop of levels.c, which a process with
more than 50,000 bars takes where a C compiler is installed; `numpy` what it takes elsewhere; the levels of both are
compared. `numba` is measured where it is installed. Run: `python -m benchmarks.profile_range`. Results are kept in
benchmarks/results/profile_range.json, with the machine's load: a processor shared with others is slower.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.compiled.levels import compiled_levels
from trainer.data.profiles.compiled.library import loop as loop_of_c
from trainer.data.profiles.developing import numpy_levels
from trainer.data.profiles.profile import BarRows

CASES = (
    (390, 100),
    (390, 130),
    (390, 500),
    (390, 2_500),
    (390, 45_000),
    (1440, 500),
    (1440, 2_500),
    (1440, 45_000),
    (1440, 57_000),
)  # bars, about rows
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


def compiled_by_numba(low: Any, high: Any, share: Any, starts: Any) -> Any:
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
    """Return the least processor time of seven runs in seconds."""
    times = []
    for _ in range(7):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    """Print one line a case."""
    compiled, numba = loop_of_c(), numba_loop()
    for name in (name for name, program in (("compiled", compiled), ("numba", numba)) if program is None):
        print(f"{name} is not to be had here: its column is empty")
    print("bars    rows  compiled     numpy     numba   (microseconds a bar)")
    cases = [measured(*case, compiled=compiled, numba=numba) for case in CASES]
    versions = {name: importlib.metadata.version(name) for name in ("numpy", *(("numba",) if numba else ()))}
    record = {"data": "SYNTHETIC", "processors": os.cpu_count(), "load_average": os.getloadavg(), "versions": versions}
    RESULTS.write_text(json.dumps({**record, "cases": cases}, indent=1) + "\n")


def numba_loop() -> Callable[..., object] | None:
    """Return the minimal loop as numba compiles it, None where it is not installed."""
    try:
        return importlib.import_module("numba").njit(compiled_by_numba)  # type: ignore[no-any-return]
    except ImportError:
        return None


def measured(
    bars: int, rows: int, *, compiled: Callable[..., None] | None, numba: Callable[..., object] | None
) -> dict[str, float]:
    """Print and return a line. Raises AssertionError where the levels of two ways differ."""
    made, starts = bars_of(bars, rows)
    ends = [*starts[1:], len(made)]
    spans = [int(made.high[a:b].max() - made.low[a:b].min()) + 1 for a, b in zip(starts, ends, strict=True)]
    case: dict[str, float] = {"bars_a_session": bars, "rows_a_session": round(float(np.mean(spans)))}
    c, expected = ProfileConventions(), numpy_levels(made, starts, ProfileConventions())
    runs: dict[str, Callable[[], object]] = {"numpy": lambda: numpy_levels(made, starts, c)}
    if compiled is not None:
        same = vars(compiled_levels(made, starts, c, compiled))
        assert all((same[name] == values).all() for name, values in vars(expected).items())
        runs["compiled"] = lambda: compiled_levels(made, starts, c, compiled)
    if numba is not None:
        runs["numba"] = lambda: numba(made.low, made.high, made.share, starts)
    case |= {f"{name}_microseconds_a_bar": round(best(run) / len(made) * 1e6, 3) for name, run in runs.items()}
    shown = [f"{case.get(f'{name}_microseconds_a_bar', float('nan')):>9.2f}" for name in ("compiled", "numpy", "numba")]
    print(f"{bars:>4} {np.mean(spans):>7.0f} {' '.join(shown)}", flush=True)
    return case


if __name__ == "__main__":
    main()
