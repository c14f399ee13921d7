"""Features that compare a bar with the sessions before its own.

Blocks arrive in order; what the next one needs of them is a short list of session summaries.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trainer.data.bar import Floats
from trainer.data.conventions import ProfileConventions
from trainer.data.features.profile_features import FinishedSessions, side
from trainer.data.profiles.finished import Finished, composite_poc
from trainer.data.profiles.profile import level
from trainer.data.profiles.session_blocks import Block
from trainer.data.profiles.value_area import Integers
from trainer.data.ticks import whole_ticks

SESSIONS = 20  # how far back a bar looks
NAKED_LIMIT = 5.0  # in average true ranges


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A finished session. Prices in ticks; `volume` and number of `bars` per time of day.

    At one time of day there are several bars where clocks are put back, and in bars of trades or of ranges.
    """

    poc: float
    high: float  # of the value area
    low: float
    close: float
    last_close: float  # in currency
    profile: Finished
    volume: Floats
    bars: Integers
    vix: float


LEVELS: tuple[Literal["poc", "high", "low"], ...] = ("poc", "high", "low")
PRIOR = ("ppoc_dist", "pvah_dist", "pval_dist", "pva_width", "p_close_dist")


@dataclass(kw_only=True)
class History:
    """The last SESSIONS summaries, oldest first, and which of their points of control are still naked."""

    conventions: ProfileConventions
    slots: int  # bars of a full session
    past: deque[Summary] = field(default_factory=lambda: deque(maxlen=SESSIONS))
    naked: list[tuple[int, float]] = field(default_factory=list)  # number of the session, and its point
    sessions: int = 0  # seen so far

    def features(self, block: Block, done: FinishedSessions) -> dict[str, Floats]:
        """Return the features of a block, each of shape (bars,), and keep its sessions."""
        parts: list[dict[str, Floats]] = []
        for session, start in enumerate(block.starts.tolist()):
            rows = slice(start, start + int(block.counts[session]))
            parts.append(self._session(block, rows, float(block.atr[session])))
            self._remember(self._summary(block, rows, done, session))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _session(self, block: Block, rows: slice, atr: float) -> dict[str, Floats]:
        bars = block.bars[rows]
        close, high, low = (whole_ticks(values, self.conventions.tick) for values in (bars.close, bars.high, bars.low))
        found = {**self._prior(close, float(bars.open[0]), atr), **self._composites(close, atr)}
        found |= self._naked(low, high, close, atr)
        found |= self._volume(self._slots(block, rows), bars.volume)
        if bars.vix_close is not None:
            found["vix_level_z_20d"] = self._vix(bars.vix_close)
        return found

    def _prior(self, close: Floats, opened: float, atr: float) -> dict[str, Floats]:
        if not self.past:
            return {name: np.full(len(close), np.nan) for name in (*PRIOR, "open_vs_pva", "gap_open")}
        last = self.past[-1]
        values: tuple[Any, ...] = (
            close - last.poc,
            close - last.high,
            close - last.low,
            last.high - last.low,
            close - last.close,
        )
        found = {name: np.broadcast_to(value / atr, close.shape) for name, value in zip(PRIOR, values, strict=True)}
        first = whole_ticks(np.full(1, opened), self.conventions.tick)
        place = side(first, np.full(1, last.high), np.full(1, last.low))[0]
        gap = np.log(opened / last.last_close)
        return {**found, "open_vs_pva": np.full(len(close), place), "gap_open": np.full(len(close), gap)}

    def _composites(self, close: Floats, atr: float) -> dict[str, Floats]:
        return {f"poc{n}_dist": (close - self._composite_poc(n)) / atr for n in (5, SESSIONS)}

    def _composite_poc(self, sessions: int) -> float:
        """Return the point of control of the last `sessions` profiles added up, in ticks."""
        if len(self.past) < sessions:
            return float("nan")
        row = composite_poc([part.profile for part in list(self.past)[-sessions:]], self.conventions)
        return float(level(np.array([row]), "poc", self.conventions)[0])

    def _naked(self, low: Floats, high: Floats, close: Floats, atr: float) -> dict[str, Floats]:
        """Return distances to the nearest naked points of control, and remove those that were visited."""
        points = self._in_reach(float(low.min()), float(high.max()))
        visits = (low[:, np.newaxis] <= points) & (high[:, np.newaxis] >= points)  # (bars, points)
        gone = np.logical_or.accumulate(visits, axis=0)
        away = np.where(gone, np.inf, points - close[:, np.newaxis]) / atr
        above = np.where(away > 0, away, NAKED_LIMIT).min(axis=1, initial=NAKED_LIMIT)
        below = np.where(gone | (away > 0), NAKED_LIMIT, -away).min(axis=1, initial=NAKED_LIMIT)
        visited = set(points[gone[-1]].tolist())
        self.naked = [(session, point) for session, point in self.naked if point not in visited]
        known = len(self.past) == SESSIONS and not np.isnan(atr)
        return {
            "naked_poc_above_dist": above if known else np.full(len(close), np.nan),
            "naked_poc_below_dist": below if known else np.full(len(close), np.nan),
        }

    def _in_reach(self, low: float, high: float) -> Floats:
        """Return the naked points that can be nearest: those in the session's range, and the next on either side."""
        points = np.unique(np.array([point for _, point in self.naked], np.float64))
        first, last = np.searchsorted(points, low, "left"), np.searchsorted(points, high, "right")
        return points[max(0, int(first) - 1) : int(last) + 1]

    def _slots(self, block: Block, rows: slice) -> Integers:
        """Return each bar's time of day as a number of bars from the session's begin."""
        return np.minimum((block.second[rows] - 1) // block.spacing, self.slots - 1)

    def _volume(self, slots: Integers, volume: Floats) -> dict[str, Floats]:
        if len(self.past) < SESSIONS:
            return {name: np.full(len(volume), np.nan) for name in ("vol_tod_ratio", "cum_vol_ratio")}
        before = np.stack([part.volume for part in self.past])  # (sessions, slots)
        usual = _mean_or_nan(before.sum(axis=0), np.stack([part.bars for part in self.past]).sum(axis=0))[slots]
        so_far = (np.cumsum(before, axis=1).sum(axis=0) / SESSIONS)[slots]
        return {"vol_tod_ratio": _against(volume, usual), "cum_vol_ratio": _against(np.cumsum(volume), so_far)}

    def _vix(self, level: Floats) -> Floats:
        if len(self.past) < SESSIONS:
            return np.full(len(level), np.nan)
        origin = self.past[-1].vix  # so that equal values have a deviation of exactly zero
        last = np.array([part.vix for part in self.past]) - origin
        deviation = last.std()
        return (level - origin - last.mean()) / deviation if deviation > 0 else np.zeros(len(level))

    def _summary(self, block: Block, rows: slice, done: FinishedSessions, session: int) -> Summary:
        """Return what later sessions need of this one."""
        poc, high, low = (
            float(level(getattr(done, which)[session : session + 1], which, self.conventions)[0]) for which in LEVELS
        )
        slots = self._slots(block, rows)
        close, vix = float(block.bars.close[rows.stop - 1]), block.bars.vix_close
        return Summary(
            poc=poc,
            high=high,
            low=low,
            close=float(np.rint(close / self.conventions.tick)),
            last_close=close,
            profile=done.profiles[session],
            volume=np.bincount(slots, block.bars.volume[rows], self.slots).astype(np.float64),
            bars=np.bincount(slots, minlength=self.slots),
            vix=float("nan") if vix is None else float(vix[rows.stop - 1]),
        )

    def _remember(self, done: Summary) -> None:
        self.past.append(done)
        self.sessions += 1
        recent = [entry for entry in self.naked if entry[0] > self.sessions - SESSIONS]
        self.naked = [*recent, (self.sessions, done.poc)]


def _mean_or_nan(total: Floats, count: Integers) -> Floats:
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _against(value: Floats, usual: Floats) -> Floats:
    return np.where(np.nan_to_num(usual) > 0, value / np.where(np.nan_to_num(usual) > 0, usual, 1.0), 1.0)
