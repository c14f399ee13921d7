"""Volumes at a time of day where a session has several bars at one: clocks put back, and bars of trades or ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fixtures.intraday_bars import CHOSEN
from trainer.data.bar import Bars
from trainer.data.conventions import SessionConventions
from trainer.data.features.catalog import NAMES
from trainer.data.features.history_features import SESSIONS
from trainer.data.features.intraday import intraday_rows
from trainer.data.profiles.session_blocks import Counts
from trainer.data.sessions import wall_clock

VOLUMES = ("vol_tod_ratio", "cum_vol_ratio")


def bars_at(date: np.ndarray) -> Bars:
    """Return bars at these instants, SYNTHETIC."""
    rng = np.random.default_rng(3)
    close = 5000 + 0.25 * np.cumsum(rng.integers(-4, 5, len(date)))
    volume = rng.integers(1, 1000, len(date)).astype(np.float64)
    return Bars(date=date, open=close, high=close + 1, low=close - 1, close=close, volume=volume)


def computed(bars: Bars, sessions: SessionConventions, spacing: int) -> dict[str, np.ndarray]:
    settings = replace(CHOSEN, sessions=sessions, spacing=spacing, vix=False)
    rows = np.concatenate([rows.features for rows in intraday_rows([bars], settings, counts=Counts())])
    return {name: rows[:, NAMES.index(name)] for name in VOLUMES}


def plain(bars: Bars, zone: str, begin: int, slots: int, spacing: int) -> dict[str, np.ndarray]:
    """Return the two ratios by their formulas, bar by bar."""
    local = wall_clock(bars.date, zone).astype(np.int64) - begin
    day, slot = local // 86_400, np.minimum((local % 86_400 + spacing - 1) // spacing, slots - 1)
    days, found = np.unique(day), {name: np.full(len(bars), np.nan) for name in VOLUMES}
    for bar in np.flatnonzero(day >= days[SESSIONS]):
        past = np.isin(day, days[np.searchsorted(days, day[bar]) - SESSIONS :][:SESSIONS])
        same, upto = past & (slot == slot[bar]), past & (slot <= slot[bar])
        so_far = (day == day[bar]) & (np.arange(len(bars)) <= bar)
        found["vol_tod_ratio"][bar] = bars.volume[bar] / bars.volume[same].mean() if same.any() else 1.0
        found["cum_vol_ratio"][bar] = bars.volume[so_far].sum() / (bars.volume[upto].sum() / SESSIONS)
    return found


def autumn() -> tuple[Bars, str, int, int, int]:
    """Hours of New York around 3 November 2024, which has 25."""
    hours = np.datetime64("2024-10-12T04:00:00", "s") + np.arange(24 * 25 + 1) * np.timedelta64(3600, "s")
    return bars_at(hours), "America/New_York", 0, 24, 3600


def trades() -> tuple[Bars, str, int, int, int]:
    """Bars of so many trades each: seconds to ten minutes apart, most of them ten."""
    rng = np.random.default_rng(5)
    step = np.where(rng.random(36 * 23) < 0.6, 600, rng.integers(5, 600, 36 * 23)).reshape(23, 36)
    second = 14 * 3600 + np.cumsum(step, axis=1) - step[:, :1]
    date = (np.datetime64("2024-05-06T00:00:00", "s") + 86_400 * np.arange(23)[:, np.newaxis] + second).ravel()
    return bars_at(date), "UTC", 14 * 3600, 36, 600


@pytest.mark.parametrize("made", [autumn, trades])
def test_volume_at_a_time_of_day_counts_all_bars_of_it(made) -> None:
    bars, zone, begin, slots, spacing = made()
    hours = {"begin": f"{begin // 3600:02}:00", "end": f"{begin // 3600 + slots * spacing // 3600:02}:00"}
    found = computed(bars, SessionConventions(**hours, zone=zone), spacing)
    expected = plain(bars, zone, begin, slots, spacing)
    for name in VOLUMES:
        assert np.isfinite(expected[name]).sum() >= 20
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
