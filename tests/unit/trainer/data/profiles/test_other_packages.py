"""The same profiles as volprofile 1.0.1 and pandas-ta-classic 0.8.32, on recorded SYNTHETIC bars.

benchmarks/other_profiles.py recorded them from the packages; neither is installed here. What their code does:

- volprofile, `getVP`: bins from the lowest to the highest price, closed below; the highest price is in the last bin.
- volprofile, `getVPWithOHLC`: five parts a bin; a bar gives equal shares to the parts from its low's to its high's.
- pandas-ta-classic, `vp(sort_close=True)`: bins closed above; the lowest price is in the first. Bars whose close equals
  the one before are left out; there are none here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.profile import bar_rows, difference_profile

RECORD = json.loads((Path(__file__).parent / "other_packages.json").read_text())
BINS, LOWEST, TICK = RECORD["bins"], RECORD["lowest"], RECORD["tick"]
UNIT = 2.0**-20  # of volume; equal shares are rounded down to it


def ours(case: dict[str, Any], parts: int, rounding: Literal["floor", "ceil"], spread: bool) -> np.ndarray:
    """Return volume by bin, of `parts` rows each; the price that only their edge rule places is moved by a tick."""
    low, high = (np.array(case[name if spread else "close"]) for name in ("low", "high"))
    height = (max(case["high"]) - LOWEST) // (BINS * parts)
    top = LOWEST + BINS * parts * height - 1
    clip = (
        (lambda ticks: np.minimum(ticks, top)) if rounding == "floor" else (lambda ticks: np.maximum(ticks, LOWEST + 1))
    )
    c = ProfileConventions(tick=TICK, row_ticks=height, row_origin=LOWEST, rounding=rounding)
    ends = [clip(ticks) * TICK for ticks in (low, high, high)]
    rows = bar_rows(*ends, np.array(case["volume"], float), c)
    first = 0 if rounding == "floor" else 1
    return difference_profile(rows, first, BINS * parts).reshape(BINS, parts).sum(axis=1) * UNIT


@pytest.mark.parametrize("case", RECORD["cases"])
def test_profile_of_closes_equals_volprofile(case: dict[str, Any]) -> None:
    np.testing.assert_array_equal(ours(case, 1, "floor", spread=False), case["volprofile_closes"])


@pytest.mark.parametrize("case", RECORD["cases"])
def test_profile_of_ranges_equals_volprofile(case: dict[str, Any]) -> None:
    volume = ours(case, 5, "floor", spread=True)
    np.testing.assert_allclose(volume, case["volprofile_ranges"], rtol=0, atol=len(case["volume"]) * 5 * UNIT)
    assert volume.argmax() == np.argmax(case["volprofile_ranges"])


@pytest.mark.parametrize("case", RECORD["cases"])
def test_profile_closed_above_equals_pandas_ta(case: dict[str, Any]) -> None:
    np.testing.assert_array_equal(ours(case, 1, "ceil", spread=False), case["pandas_ta_volume"])
    step = (max(case["high"]) - LOWEST) / BINS * TICK
    np.testing.assert_allclose(case["pandas_ta_low"][1:], LOWEST * TICK + step * np.arange(1, BINS), atol=0.005)
