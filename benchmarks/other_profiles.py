"""Profiles of SYNTHETIC bars by volprofile 1.0.1 and pandas-ta-classic 0.8.32, recorded for the tests.

    python -m benchmarks.other_profiles

Needs both packages, in an environment of their own: they are no dependency of this project. Writes
tests/unit/trainer/data/profiles/other_packages.json: bars in ticks of 0.25, and the volume of each of their bins.
"""

from __future__ import annotations

import importlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).resolve().parents[1] / "tests/unit/trainer/data/profiles/other_packages.json"
TICK, BINS, BARS, LOWEST = 0.25, 12, 80, 400


def bars_of(seed: int) -> dict[str, list[int]]:
    """Return SYNTHETIC bars whose range is a whole number of ticks a bin, and whose closes all differ from the last."""
    rng = np.random.default_rng(seed)
    height, span = int(rng.integers(1, 4)), 5 * BINS
    close = LOWEST + np.cumsum(rng.integers(1, span * height, BARS)) % (span * height + 1)
    close[0], close[1] = LOWEST, LOWEST + span * height
    keep = np.flatnonzero(np.diff(close, prepend=-1))
    close = close[keep]
    low = np.maximum(LOWEST, close - rng.integers(0, 40, len(close)))
    high = np.minimum(LOWEST + span * height, close + rng.integers(0, 40, len(close)))
    volume = rng.integers(1, 900, len(close))
    return {name: values.tolist() for name, values in vars_of(low, high, close, volume).items()}


def vars_of(*columns: Any) -> dict[str, Any]:
    """Return the columns by name."""
    return dict(zip(("low", "high", "close", "volume"), columns, strict=True))


def recorded(seed: int) -> dict[str, Any]:
    """Return bars with what both packages make of them."""
    pandas, theirs = importlib.import_module("pandas"), importlib.import_module("volprofile.main")
    bars = bars_of(seed)
    frame = pandas.DataFrame({name: np.array(bars[name]) * TICK for name in ("low", "high", "close")})
    frame["volume"] = np.array(bars["volume"], dtype=float)
    frame["price"] = frame["close"]
    by_close = importlib.import_module("pandas_ta_classic").vp(
        frame["close"], frame["volume"], width=BINS, sort_close=True
    )
    return {
        **bars,
        "volprofile_closes": theirs.getVP(frame, BINS)["aggregateVolume"].tolist(),
        "volprofile_ranges": theirs.getVPWithOHLC(frame, BINS)["aggregateVolume"].tolist(),
        "pandas_ta_low": by_close["low_close"].tolist(),
        "pandas_ta_volume": (by_close["pos_volume"] + by_close["neg_volume"]).tolist(),
    }


def main() -> None:
    """Write the record."""
    packages = {name: version(name) for name in ("volprofile", "pandas-ta-classic")}
    record = {"packages": packages, "data": "SYNTHETIC, seeded", "tick": TICK, "bins": BINS, "lowest": LOWEST}
    RECORD.write_text(json.dumps({**record, "cases": [recorded(seed) for seed in range(6)]}) + "\n")


if __name__ == "__main__":
    main()
