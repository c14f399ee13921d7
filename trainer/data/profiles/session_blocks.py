"""Bars cut into blocks of whole sessions, the same blocks however the bars arrived.

A feature of a bar may need the bars before it and summaries of the sessions before. Both travel with the
block, so blocks can be computed by any number of workers, and every value has one way to be computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from trainer.data.bar import Bars, Floats, joined
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.profiles.rolling import window_mean
from trainer.data.sessions import Clock, Integers, session_clock
from trainer.data.ticks import in_ticks

SESSIONS = 32  # a block; about 12,500 minute bars of regular hours
HALO = 128  # bars carried from before the block: the longest window is 120 returns
ATR_SESSIONS = 14


@dataclass(frozen=True, kw_only=True)
class Block:
    """Whole sessions and what they need of the past.

    bars: flat, in-session bars; before: the HALO bars before them, NaN where there are none.
    starts: where each session begins in `bars`; day and atr: of each session, atr in ticks.
    second: from its session's begin to each bar's close.
    """

    bars: Bars
    before: Bars
    starts: Integers
    day: np.ndarray[tuple[int, ...], np.dtype[np.datetime64]]
    second: Integers
    atr: Floats
    spacing: int

    @property
    def counts(self) -> Integers:
        """Bars of each session."""
        return np.diff(np.append(self.starts, len(self.bars)))

    @property
    def session(self) -> Integers:
        """Number of each bar's session in the block."""
        return np.repeat(np.arange(len(self.starts)), self.counts)

    def with_past(self, name: str) -> Floats:
        """Return a column with the HALO bars before it in front."""
        return np.concatenate([getattr(self.before, name), getattr(self.bars, name)])


@dataclass(kw_only=True)
class Counts:
    """What the blocks saw: bars that arrived, and those outside every session."""

    bars: int = 0
    outside: int = 0
    sessions: int = 0


def blocks(
    chunks: Iterable[Bars],
    sessions: SessionConventions,
    profile: ProfileConventions,
    *,
    spacing: int,
    counts: Counts,
) -> Iterator[Block]:
    """Yield blocks of SESSIONS sessions, the last one shorter; `counts` is filled on the way.

    Args:
        chunks: bars in order of time.
        spacing: length of a bar in seconds.
    """
    cutter = _Cutter(profile=profile, spacing=spacing)
    held: list[tuple[Bars, Clock]] = []
    days: set[object] = set()
    for chunk in chunks:
        clock = session_clock(chunk.date, sessions, spacing)
        counts.bars += len(chunk)
        counts.outside += len(chunk) - int(clock.inside.sum())
        kept = _kept(chunk, clock)
        days.update(np.unique(kept[1].day).tolist())
        held.append(kept)
        if len(days) > SESSIONS:
            bars, clock = _joined(held)
            begins = session_starts(clock)
            while len(begins) > SESSIONS:
                cut = int(begins[SESSIONS])
                counts.sessions += SESSIONS
                yield cutter.cut(bars[:cut], _part(clock, slice(0, cut)))
                bars, clock = bars[cut:], _part(clock, slice(cut, None))
                begins = session_starts(clock)
            held, days = [(bars, clock)], set(np.unique(clock.day).tolist())
    if days:
        bars, clock = _joined(held)
        counts.sessions += len(session_starts(clock))
        yield cutter.cut(bars, clock)


@dataclass(kw_only=True)
class _Cutter:
    """Makes blocks, and carries bars and session ranges from one to the next."""

    profile: ProfileConventions
    spacing: int
    before: Bars | None = None
    ranges: Floats | None = None  # (ATR_SESSIONS + 1, 3): high, low, close of the sessions before, in ticks

    def cut(self, bars: Bars, clock: Clock) -> Block:
        starts = session_starts(clock)
        before = _nothing(bars) if self.before is None else self.before
        known = np.full((ATR_SESSIONS + 1, 3), np.nan) if self.ranges is None else self.ranges
        ends = np.append(starts[1:], len(bars)) - 1
        high, low = np.maximum.reduceat(bars.high, starts), np.minimum.reduceat(bars.low, starts)
        new = in_ticks(np.stack([high, low, bars.close[ends]], axis=1), self.profile.tick)
        ranges = np.concatenate([known, new])
        block = Block(
            bars=bars,
            before=before,
            starts=starts,
            day=clock.day[starts],
            second=clock.second,
            atr=_session_atr(ranges),
            spacing=self.spacing,
        )
        self.before = joined([before, bars])[-HALO:]
        self.ranges = ranges[-ATR_SESSIONS - 1 :]
        return block


def _session_atr(ranges: Floats) -> Floats:
    """Return, for each session of the block, the mean true range of the ATR_SESSIONS before it, in ticks."""
    high, low, close = np.ascontiguousarray(ranges.T)
    previous = np.concatenate([[np.nan], close[:-1]])
    true_range = np.maximum(high, previous) - np.minimum(low, previous)
    mean = window_mean(true_range, ATR_SESSIONS)[ATR_SESSIONS:-1]
    return np.maximum(mean, 1.0)


def session_starts(clock: Clock) -> Integers:
    """Return the position of each session's first bar."""
    return (
        np.flatnonzero(np.concatenate([[True], clock.day[1:] != clock.day[:-1]]))
        if len(clock.day)
        else np.zeros(0, np.int64)
    )


def _nothing(like: Bars) -> Bars:
    """Return HALO bars that are not there: NaN, so that what needs them is NaN, too."""
    empty = np.full(HALO, np.nan)
    return replace(
        like,
        date=np.full(HALO, np.datetime64("NaT", "s")),
        **{name: empty.copy() for name in ("open", "high", "low", "close", "volume")},
        vix_close=None if like.vix_close is None else empty.copy(),
    )


def _kept(bars: Bars, clock: Clock) -> tuple[Bars, Clock]:
    if clock.inside.all():
        return bars, clock
    return bars.where(clock.inside), _part(clock, clock.inside)


def _part(clock: Clock, rows: object) -> Clock:
    return Clock(**{name: values[rows] for name, values in vars(clock).items()})


def _joined(held: list[tuple[Bars, Clock]]) -> tuple[Bars, Clock]:
    clocks = [clock for _, clock in held]
    names = vars(clocks[0])
    clock = Clock(**{name: np.concatenate([getattr(c, name) for c in clocks]) for name in names})
    return joined([bars for bars, _ in held]), clock
