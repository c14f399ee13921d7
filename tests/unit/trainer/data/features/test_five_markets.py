"""All features on SYNTHETIC bars of five kinds of market against a plain recomputation in exact numbers.

Prices reach the trainer as the decimal text of a file would, so that a tick of 1e-5 is rounded as it is for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests.fixtures import plain_features
from trainer.data.bar import Bars
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.features.catalog import NAMES
from trainer.data.features.inspect import volume_bits
from trainer.data.features.intraday import Settings, intraday_rows
from trainer.data.profiles.session_blocks import Counts
from trainer.data.sessions import instants

SESSIONS = 24
FULL = np.datetime64("2024-11-29")  # the day after Thanksgiving


@dataclass(frozen=True, kw_only=True)
class Market:
    """tick: as text; price: of the first bar in ticks; move: of a bar in ticks; bars of `minutes` in `hours`.

    idle: share of bars without volume or movement, which come in the morning, too. fraction: digits of a volume.
    """

    tick: str
    price: int
    move: float
    minutes: int
    hours: tuple[str, str, str]  # begin, end, zone
    idle: float = 0.0
    digits: int = 0
    first: str = "2024-03-04"
    weekends: bool = False
    half_days: str = "none"

    @property
    def sessions(self) -> SessionConventions:
        begin, end, zone = self.hours
        return SessionConventions(begin=begin, end=end, zone=zone, half_days=self.half_days)  # type: ignore[arg-type]


MARKETS = {
    "futures at 0.25": Market(
        tick="0.25", price=21_000, move=6.0, minutes=5, hours=("09:30", "16:00", "America/New_York")
    ),
    "FX at 1e-5": Market(
        tick="0.00001", price=108_531, move=9.0, minutes=15, hours=("08:00", "17:00", "Europe/London"), idle=0.1
    ),
    "crypto at 0.01 around the clock": Market(
        tick="0.01", price=6_391_507, move=40.0, minutes=30, hours=("00:00", "24:00", "UTC"), digits=5, weekends=True
    ),
    "a European stock at 0.005": Market(
        tick="0.005", price=7_342, move=2.0, minutes=5, hours=("09:00", "17:30", "Europe/Berlin"), idle=0.4
    ),
    "half days at 0.25": Market(
        tick="0.25", price=18_000, move=5.0, minutes=5, hours=("09:30", "16:00", "America/New_York"),
        first="2024-10-29", half_days="us",
    ),
}  # fmt: skip


@cache
def table(name: str) -> tuple[np.ndarray, ...]:
    """Day, minute, then open, high, low, close in ticks, volume and VIX of each bar."""
    market = MARKETS[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    length = market.sessions.minutes // market.minutes
    calendar = "1111111" if market.weekends else "1111100"
    days = np.busday_offset(market.first, np.arange(SESSIONS), roll="forward", weekmask=calendar)
    short = (days == FULL) & (market.half_days == "us")
    minute = np.tile(np.arange(length) * market.minutes, SESSIONS)
    keep = (minute < np.where(short, 210, 10**6).repeat(length)) & (rng.random(len(minute)) > 0.02)
    day, minute = days.repeat(length)[keep], minute[keep]
    begins = np.concatenate([[True], day[1:] != day[:-1]])
    quiet = (rng.random(len(day)) < market.idle) | (begins & (rng.random(len(day)) < 2 * market.idle))
    step = np.where(quiet, 0, np.rint(rng.normal(0, market.move, len(day))))
    jump = np.where(begins, np.rint(rng.normal(0, 8 * market.move, len(day))), 0)
    close = market.price + np.cumsum(step + jump)
    opened = close - step
    up, down = (np.where(quiet, 0, np.rint(np.abs(rng.normal(0, market.move, len(day))))) for _ in range(2))
    volume = np.where(quiet, 0, np.round(rng.lognormal(4, 1, len(day)), market.digits))
    vix = np.round(15 + np.cumsum(rng.normal(0, 0.05, len(day))), 2)
    ticks = (opened, np.maximum(opened, close) + up, np.minimum(opened, close) - down, close)
    return day, minute, *(values.astype(int) for values in ticks), volume, vix


@cache
def computed(name: str, chunk: int = 10**9) -> np.ndarray:
    market, (day, minute, *ticks, volume, vix) = MARKETS[name], table(name)
    digits = len(market.tick.partition(".")[2])
    scale = round(float(market.tick) * 10**digits)
    prices = [np.array([float(f"{v * scale / 10**digits:.{digits}f}") for v in column.tolist()]) for column in ticks]
    begin = market.sessions.begin_minute
    local = day.astype("M8[s]") + (minute + begin) * np.timedelta64(60, "s")
    date = instants(local, market.hours[2])[0]
    columns = dict(zip(("open", "high", "low", "close"), prices, strict=True))
    bars = Bars(date=date, **columns, volume=volume, vix_close=vix)
    settings = Settings(
        profile=ProfileConventions(tick=float(market.tick), volume_bits=volume_bits(volume)),
        sessions=market.sessions,
        spacing=market.minutes * 60,
        vix=True,
    )
    parts = (bars[at : at + chunk] for at in range(0, len(bars), chunk))
    return np.concatenate([rows.features for rows in intraday_rows(parts, settings, counts=Counts())])


@cache
def plain(name: str) -> tuple[plain_features.Session, ...]:
    market, (day, minute, *rest) = MARKETS[name], table(name)
    names = ("open", "high", "low", "close", "volume", "vix", "minute")
    rows = zip(*(column.tolist() for column in (*rest, minute + market.minutes)), strict=True)
    bars = [plain_features.Bar(**dict(zip(names, row, strict=True))) for row in rows]
    edges = [*np.flatnonzero(np.concatenate([[True], day[1:] != day[:-1]])).tolist(), len(day)]
    return tuple(plain_features.Session(tuple(bars[a:b])) for a, b in pairwise(edges))


@pytest.mark.parametrize("name", MARKETS)
def test_features_of_a_market_agree_with_a_plain_recomputation(name: str) -> None:
    market, sessions, values = MARKETS[name], plain(name), computed(name)
    begins = np.cumsum([0, *(len(session.bars) for session in sessions)])
    compared = 0
    for number in range(20, SESSIONS):
        bars = sessions[number].bars
        day = table(name)[0][begins[number]]
        short = market.half_days == "us" and day == FULL
        schedule = plain_features.Schedule(
            full=market.sessions.minutes, today=210 if short else market.sessions.minutes
        )
        for bar in sorted({*range(0, len(bars), 5), 0, 1, 2, len(bars) - 1}):
            expected = plain_features.every_feature(sessions[:number], bars[: bar + 1], schedule)
            assert set(expected) == set(NAMES)
            actual = dict(zip(NAMES, values[begins[number] + bar].tolist(), strict=True))
            wrong = {
                n: (actual[n], expected[n])
                for n in NAMES
                if actual[n] != pytest.approx(expected[n], rel=1e-6, abs=1e-7)
            }
            assert not wrong, (number, bar, wrong)
            compared += 1
    assert compared >= 40


@pytest.mark.parametrize("name", MARKETS)
def test_chunk_size_changes_no_bit_of_a_market(name: str) -> None:
    assert computed(name, 97).tobytes() == computed(name).tobytes()


def test_half_days_among_the_bars_compared() -> None:
    days = np.unique(table("half days at 0.25")[0])
    assert FULL in days[20:]
