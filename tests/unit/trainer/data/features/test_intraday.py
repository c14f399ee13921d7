"""The 54 features on SYNTHETIC bars: nothing looks ahead, and no way of computing them changes a bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures import plain_features
from tests.fixtures.synthetic_bars import synthetic_bars
from trainer.data.bar import Bars, joined
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.features import intraday
from trainer.data.features.catalog import CATALOG, NAMES
from trainer.data.features.intraday import Settings, intraday_rows
from trainer.data.profiles.session_blocks import Block, Counts
from trainer.data.sessions import instants, session_minutes, us_half_day, wall_clock

COUNT = 9_000  # 23 sessions: three beyond the twenty that the features look back to
CHOSEN = Settings(profile=ProfileConventions(), sessions=SessionConventions(), spacing=60, vix=True)


@cache
def bars_of(seed: int = 0, count: int = COUNT) -> Bars:
    bars = synthetic_bars(count, seed)
    return replace(bars, date=instants(bars.date, "America/New_York")[0])


def features(bars: Bars, chunk: int = 10**9, workers: int = 1, chosen: Settings = CHOSEN) -> np.ndarray:
    chunks = (bars[begin : begin + chunk] for begin in range(0, len(bars), chunk))
    return np.concatenate([rows.features for rows in intraday_rows(chunks, chosen, counts=Counts(), workers=workers)])


@cache
def whole() -> np.ndarray:
    return features(bars_of())


def with_future_of(past: Bars, future: Bars, now: int) -> Bars:
    return joined([past[: now + 1], replace(future[now + 1 :], date=past.date[now + 1 :])])


def test_features_are_54_each_described_once() -> None:
    assert len(NAMES) == len(set(NAMES)) == 54 == whole().shape[1]
    assert all(feature.formula and feature.unit for feature in CATALOG)
    assert sum(feature.needs_vix for feature in CATALOG) == 5


def test_features_after_twenty_sessions_are_all_known_and_vary() -> None:
    known = np.isfinite(whole()).all(axis=1)
    session = np.unique(bars_of().date.astype("M8[D]"), return_inverse=True)[1]
    assert not known[session < 20].any()
    assert known[session >= 20].all()
    assert (whole()[known].std(axis=0) > 0).all()


@given(now=st.integers(COUNT - 1000, COUNT - 2), seed=st.integers(1, 3))
@settings(deadline=None, max_examples=12)
def test_another_future_changes_no_bit_of_the_past(now: int, seed: int) -> None:
    changed = features(with_future_of(bars_of(), bars_of(seed), now))
    assert changed[: now + 1].tobytes() == whole()[: now + 1].tobytes()
    assert changed[now + 1 :].tobytes() != whole()[now + 1 :].tobytes()


@given(end=st.integers(COUNT - 1000, COUNT - 1))
@settings(deadline=None, max_examples=6)
def test_bars_not_yet_there_change_no_bit_either(end: int) -> None:
    assert features(bars_of()[:end]).tobytes() == whole()[:end].tobytes()


def test_feature_that_looks_ahead_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finished session's range, used during that session, is the usual leak."""
    honest = intraday.session_features

    def leaking(block: Block, *rest: object) -> dict[str, np.ndarray]:
        found = honest(block, *rest)  # type: ignore[arg-type]
        finished = np.maximum.reduceat(block.bars.high, block.starts)[block.session]
        return {**found, "range_pct_session": finished}

    monkeypatch.setattr(intraday, "session_features", leaking)
    now = COUNT - 200
    pair = [features(bars)[: now + 1] for bars in (bars_of(), with_future_of(bars_of(), bars_of(1), now))]
    assert pair[0].tobytes() != pair[1].tobytes()


@pytest.mark.parametrize("chunk", [1_000, 1_237, 4_096])
def test_chunk_size_changes_no_bit(chunk: int) -> None:
    assert features(bars_of(), chunk).tobytes() == whole().tobytes()


def test_tiny_chunks_and_workers_change_no_bit_over_several_blocks() -> None:
    bars = bars_of(4, 390 * 70)
    one = features(bars)
    assert features(bars, 17).tobytes() == one.tobytes()
    assert features(bars, 5_000, workers=2).tobytes() == one.tobytes()


def test_bar_of_overnight_trading_between_sessions_changes_nothing() -> None:
    bars = bars_of()
    night = replace(bars[:1], date=bars.date[COUNT // 2 : COUNT // 2 + 1].astype("M8[D]").astype("M8[s]"))
    place = int(np.searchsorted(bars.date, night.date[0]))
    counts = Counts()
    rows = list(intraday_rows([joined([bars[:place], night, bars[place:]])], CHOSEN, counts=counts))
    assert np.concatenate([part.features for part in rows]).tobytes() == whole().tobytes()
    assert counts.outside == 1


def test_features_without_a_vix_stay_as_they_are() -> None:
    chosen = replace(CHOSEN, vix=False)
    without = features(replace(bars_of(), vix_close=None), chosen=chosen)
    assert without.tobytes() == whole()[:, [NAMES.index(name) for name in chosen.names]].tobytes()
    assert chosen.left_out == (
        "vix_level_z_20d", "vix_ret_5", "vix_ret_30", "vix_intraday_range", "es_vix_corr_60",
    )  # fmt: skip


def session_parts() -> Iterator[tuple[int, Bars]]:
    days = bars_of().date.astype("M8[D]")
    for begin in np.flatnonzero(np.concatenate([[True], days[1:] != days[:-1]])):
        yield int(begin), bars_of().where(days == days[begin])


@cache
def plain_sessions() -> tuple[plain_features.Session, ...]:
    """The same bars as the plain reference knows them; the bars' times are UTC, so a session's begin is looked for."""
    found = []
    for _, part in session_parts():
        assert part.vix_close is not None
        local = wall_clock(part.date, "America/New_York")
        minutes = (local - local.astype("M8[D]")).astype(int) // 60 - 570 + 1
        prices = (np.rint(price / 0.25).astype(int) for price in (part.open, part.high, part.low, part.close))
        columns = (*prices, part.volume, part.vix_close, minutes)
        names = ("open", "high", "low", "close", "volume", "vix", "minute")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found.append(
            plain_features.Session(tuple(plain_features.Bar(**dict(zip(names, row, strict=True))) for row in rows))
        )
    return tuple(found)


@pytest.mark.parametrize("number", [21, 22])
@pytest.mark.parametrize("bar", [0, 3, 29, 64, 200, 301, 387])
def test_values_of_all_54_features_agree_with_their_formulas(number: int, bar: int) -> None:
    """Each value of a bar, computed from its words with plain Python on that bar's past."""
    begin, part = list(session_parts())[number]
    bar = min(bar, len(part) - 1)
    before, now = plain_sessions()[:number], plain_sessions()[number].bars[: bar + 1]
    expected = plain_features.every_feature(before, now, plain_features.Schedule())
    assert set(expected) == set(NAMES)
    values = dict(zip(NAMES, whole()[begin + bar].tolist(), strict=True))
    for name in NAMES:
        assert values[name] == pytest.approx(expected[name], rel=2e-5, abs=2e-6), name


def test_sessions_follow_daylight_saving_time() -> None:
    """09:30 in New York is 14:30 UTC in winter and 13:30 in summer; clocks changed on 8 March and 1 November 2026."""
    days = np.array(["2026-03-06", "2026-03-09", "2026-10-30", "2026-11-02"], "M8[s]")
    utc, missing = instants(days + np.timedelta64(34_200, "s"), "America/New_York")
    assert not missing.any()
    assert ((utc - days).astype(int) // 60).tolist() == [870, 810, 810, 870]
    assert (wall_clock(utc, "America/New_York") - days == np.timedelta64(34_200, "s")).all()


def test_hour_that_never_was_is_found_and_one_that_was_twice_is_distinguished() -> None:
    missing = instants(np.array(["2026-03-08T02:30:00"], "M8[s]"), "America/New_York")[1]
    assert missing.all()
    twice = np.array(
        ["2026-11-01T01:00:00", "2026-11-01T01:30:00", "2026-11-01T01:00:00", "2026-11-01T01:30:00"], "M8[s]"
    )
    utc = instants(twice, "America/New_York")[0]
    assert (np.diff(utc).astype(int) == 1800).all()
    carried = instants(twice[2:], "America/New_York", utc[1])[0]
    assert (carried == utc[2:]).all()


def test_half_days_are_known_from_the_calendar_alone() -> None:
    days = np.array(["2025-11-28", "2025-12-24", "2025-07-03", "2020-07-03", "2021-12-24", "2025-11-27"], "M8[D]")
    assert us_half_day(days).tolist() == [True, True, True, False, False, False]
    assert session_minutes(days[:1], SessionConventions()).tolist() == [210]
    assert session_minutes(days[:1], SessionConventions(half_days="none")).tolist() == [390]
