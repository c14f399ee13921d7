"""SYNTHETIC minute bars from a seed: made to be shaped like a futures market, and no record of any.

Volume is U-shaped through the session, prices jump now and then and move in ticks, sessions open with a gap,
a few minutes have no bar, and a VIX moves against the price.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.bar import Bars, Floats

NAME = "synthetic: seeded generator, no market data"
TICK = 0.25
MINUTES = 390  # 09:30 to 16:00
FIRST_DAY = np.datetime64("2003-01-02")


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The pieces of a path, each of shape (sessions, minutes): log price at each close, and its volatility."""

    price: Floats
    volatility: Floats
    rng: np.random.Generator


def synthetic_bars(count: int, seed: int = 0) -> Bars:
    """Return `count` bars, times in New York wall clock; the same seed gives the same bars."""
    sessions = -(-count // (MINUTES - 2)) + 1
    walk = _walk(sessions, np.random.default_rng(seed))
    close = walk.price
    opening = np.concatenate([close[:, :1] * np.exp(walk.rng.normal(0, 2e-4, (sessions, 1))), close[:, :-1]], axis=1)
    spread = close * walk.volatility * np.abs(walk.rng.normal(0, 0.8, (2, sessions, MINUTES)))
    columns: dict[str, Any] = {
        "date": _times(sessions),
        "open": _tick(opening),
        "high": _tick(np.maximum(opening, close) + spread[0]),
        "low": _tick(np.minimum(opening, close) - spread[1]),
        "close": _tick(close),
        "volume": _volume(walk),
        "vix_close": _vix(walk),
    }
    keep = np.sort(np.argsort(walk.rng.random(sessions * MINUTES), kind="stable")[: sessions * (MINUTES - 2)])[:count]
    return Bars(**{name: np.ascontiguousarray(values.ravel()[keep]) for name, values in columns.items()})


def write_synthetic(path: Path, count: int, seed: int = 0) -> None:
    """Write `count` bars as CSV, and SOURCE.md next to it, so that every run on them records that they are synthetic.

    Args:
        path: CSV file to write.
        count: number of bars.
        seed: seed of the random walk.

    Raises:
        OSError: where they cannot be written.
    """
    import polars as pl

    bars = synthetic_bars(count, seed)
    columns = {name: getattr(bars, name) for name in vars(bars)} | {"date": bars.date.astype("M8[ms]")}
    pl.DataFrame(columns).write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    note = f"# {path.name}\n\nSource: {NAME} (seed {seed}, {count:,} bars)\n\nsha256: {digest}\n"
    path.with_name("SOURCE.md").write_text(note, encoding="utf-8")


def _walk(sessions: int, rng: np.random.Generator) -> Walk:
    daily = np.exp(_mean_reverting(sessions, 0.02, rng))[:, np.newaxis]
    volatility = 2.6e-4 * daily * (0.6 + 0.8 * _u_shape())
    moves = rng.normal(size=(sessions, MINUTES)) * volatility
    jumps = rng.random((sessions, MINUTES)) < 0.0005
    moves += jumps * rng.normal(0, 15, (sessions, MINUTES)) * volatility
    moves[:, 0] += rng.normal(0, 0.004, sessions)  # the gap from the session before
    path = np.cumsum(moves.ravel())
    path -= np.linspace(0, path[-1], len(path))  # no drift over the whole file: prices stay in range
    return Walk(price=4500 * np.exp(0.7 * path).reshape(moves.shape), volatility=volatility, rng=rng)


def _u_shape() -> Floats:
    middle = np.linspace(-1, 1, MINUTES)
    return np.asarray((0.3 + 1.2 * middle**2)[np.newaxis])


def _mean_reverting(count: int, pull: float, rng: np.random.Generator) -> Floats:
    values = np.zeros(count)
    for i, shock in enumerate(rng.normal(0, 0.08, count - 1)):
        values[i + 1] = (1 - pull) * values[i] + shock
    return values


def _tick(price: Floats) -> Floats:
    return np.asarray(np.rint(price / TICK) * TICK)


def _volume(walk: Walk) -> Floats:
    noise = np.exp(walk.rng.normal(0, 0.5, walk.price.shape))
    return np.asarray(np.rint(1800 * _u_shape() * noise * (walk.volatility / walk.volatility.mean())) + 1.0)


def _vix(walk: Walk) -> Floats:
    level = 16 * walk.volatility.mean(axis=1, keepdims=True) / walk.volatility.mean()
    moved = np.log(walk.price / walk.price[:, :1])
    return np.asarray(np.maximum(np.round(level * np.exp(-4 * moved + walk.rng.normal(0, 2e-3, moved.shape)), 2), 5.0))


def _times(sessions: int) -> np.ndarray[tuple[int, ...], np.dtype[np.datetime64]]:
    days = np.busday_offset(FIRST_DAY, np.arange(sessions), roll="forward").astype("M8[s]")
    minutes = (9 * 60 + 30 + np.arange(MINUTES)) * np.timedelta64(60, "s")
    return np.asarray(days[:, np.newaxis] + minutes)
