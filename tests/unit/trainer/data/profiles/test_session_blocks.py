"""Blocks hold whole sessions with their past, and are the same however the bars arrive."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from trainer.data.bar import Bars
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.profiles import session_blocks
from trainer.data.profiles.session_blocks import ATR_SESSIONS, HALO, Block, Counts, blocks, session_starts
from trainer.data.sessions import Clock

SESSIONS = SessionConventions(begin="09:30", end="16:00", zone="UTC", data_zone="UTC", half_days="none")
PROFILE = ProfileConventions(tick=0.5)
A_DAY, SPACING = (
    8,
    3600,
)  # hourly bars from 09:00: the first begins before the session, the last at its end, so six are inside


def hourly(days: int, seed: int = 0) -> Bars:
    """Return SYNTHETIC hourly bars, 09:00 to 16:00 of consecutive days, in steps of half a point."""
    rng = np.random.default_rng(seed)
    day = np.datetime64("2024-01-01", "s") + np.arange(days).astype("timedelta64[D]")
    date = (day[:, np.newaxis] + np.arange(9, 9 + A_DAY).astype("timedelta64[h]")).reshape(-1)
    close = 100 + np.cumsum(rng.integers(-6, 7, len(date))) * 0.5
    reach = rng.integers(0, 5, (2, len(date))) * 0.5
    return Bars(
        date=date.astype("datetime64[s]"),
        open=close.copy(),
        high=close + reach[0],
        low=close - reach[1],
        close=close,
        volume=rng.integers(1, 9, len(date)).astype(float),
    )


def cut(bars: Bars, *places: int) -> list[Block]:
    edges = [0, *places, len(bars)]
    chunks = [bars[begin:end] for begin, end in itertools.pairwise(edges)]
    return list(blocks(chunks, SESSIONS, PROFILE, spacing=SPACING, counts=Counts()))


@pytest.mark.parametrize("places", [(3,), (40, 41), tuple(range(7, 560, 7)), (8 * 32,), (8 * 33, 8 * 65)])
def test_blocks_are_the_same_however_the_bars_arrive(places: tuple[int, ...]) -> None:
    bars = hourly(70)
    one, other = cut(bars), cut(bars, *places)
    assert [len(block.starts) for block in one] == [32, 32, 6]
    for first, second in zip(one, other, strict=True):
        for name in ("starts", "day", "second", "atr"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
        for name in ("open", "high", "low", "close", "volume"):
            np.testing.assert_array_equal(first.with_past(name), second.with_past(name), err_msg=name)


def test_range_of_a_session_is_the_mean_of_the_fourteen_before() -> None:
    bars = hourly(40)
    inside = np.tile(np.isin(np.arange(A_DAY), range(1, 7)), 40)
    high, low, close = (getattr(bars, name)[inside].reshape(40, -1) for name in ("high", "low", "close"))
    true = [high[0].max() - low[0].min()]
    for day in range(1, 40):
        before = close[day - 1, -1]
        true.append(max(high[day].max(), before) - min(low[day].min(), before))
    atr = np.concatenate([block.atr for block in cut(bars)])
    for day in range(ATR_SESSIONS + 1, 40):
        assert atr[day] == pytest.approx(max(1.0, np.mean(true[day - ATR_SESSIONS : day]) / PROFILE.tick))
    assert np.isnan(atr[:ATR_SESSIONS]).all()


def test_past_is_absent_before_the_first_bar_and_otherwise_the_last_bars() -> None:
    first, second = cut(hourly(40))
    assert np.isnan(first.with_past("close")[:HALO]).all() and np.isnat(first.before.date).all()
    assert second.with_past("close")[:HALO].tolist() == first.bars.close[-HALO:].tolist()
    assert second.counts.tolist() == [6] * 8
    assert second.session.tolist() == [number for number in range(8) for _ in range(6)]


def test_bars_outside_every_session_are_counted_and_left_out() -> None:
    counts = Counts()
    found = list(blocks([hourly(3)], SESSIONS, PROFILE, spacing=SPACING, counts=counts))
    assert (counts.bars, counts.outside, counts.sessions) == (24, 6, 3)
    assert [len(block.bars) for block in found] == [18]


@pytest.mark.parametrize("days", [0, 2])
def test_bars_of_which_none_is_in_a_session_make_no_block(days: int) -> None:
    bars, counts = hourly(2), Counts()
    night = bars.where(np.tile(np.arange(A_DAY) < 1, 2)) if days else bars[:0]
    assert list(blocks([night], SESSIONS, PROFILE, spacing=SPACING, counts=counts)) == []
    assert (counts.bars, counts.outside) == (days, days)


def test_sessions_begin_where_the_day_changes() -> None:
    day = np.array(["2024-01-01", "2024-01-01", "2024-01-03"], "datetime64[D]")
    clock = Clock(day=day, second=np.zeros(3, np.int64), inside=np.ones(3, np.bool_))
    assert session_starts(clock).tolist() == [0, 2]
    assert session_starts(Clock(day=day[:0], second=clock.second[:0], inside=clock.inside[:0])).tolist() == []


def test_number_of_sessions_in_a_block_changes_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = hourly(40)
    whole = cut(bars)
    monkeypatch.setattr(session_blocks, "SESSIONS", 5)
    parts = cut(bars)
    assert [len(block.starts) for block in parts] == [5] * 8
    np.testing.assert_array_equal(np.concatenate([b.atr for b in whole]), np.concatenate([b.atr for b in parts]))
