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
from tests.fixtures.intraday_bars import CHOSEN, COUNT, bars_of, features, whole
from trainer.data.bar import Bars, joined
from trainer.data.features import intraday
from trainer.data.features.catalog import NAMES
from trainer.data.features.intraday import intraday_rows
from trainer.data.profiles.session_blocks import Block, Counts
from trainer.data.sessions import wall_clock


def with_future_of(past: Bars, future: Bars, now: int) -> Bars:
    return joined([past[: now + 1], replace(future[now + 1 :], date=past.date[now + 1 :])])


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
