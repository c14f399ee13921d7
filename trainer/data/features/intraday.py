"""All features of intraday bars, block by block: many workers, one order, the same bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Bars, Dates, Floats
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.features.bar_features import bar_features
from trainer.data.features.catalog import CATALOG
from trainer.data.features.history_features import History
from trainer.data.features.profile_features import (
    FinishedSessions,
    finished_sessions,
    profile_features,
    session_profiles,
)
from trainer.data.features.session_features import session_features
from trainer.data.features.workers import unless_stopped, worker_pool
from trainer.data.profiles.session_blocks import Block, Counts, blocks
from trainer.data.profiles.session_grid import Grid


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Features of consecutive in-session bars.

    Shapes: date (bars,), close (bars,), session (bars,): number of the bar's session in the file; features
    (bars, columns) as float32, NaN where the past is too short.
    """

    date: Dates
    close: Floats
    session: NDArray[np.int64]
    features: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What decides the values: conventions, the bars' spacing in seconds, whether there is a VIX."""

    profile: ProfileConventions
    sessions: SessionConventions
    spacing: int
    vix: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The features that these bars have, in the catalog's order."""
        return tuple(feature.name for feature in CATALOG if self.vix or not feature.needs_vix)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The features that need a VIX where there is none."""
        return tuple(feature.name for feature in CATALOG if feature.needs_vix and not self.vix)


def intraday_rows(chunks: Iterable[Bars], settings: Settings, *, counts: Counts, workers: int = 1) -> Iterator[Rows]:
    """Yield the features of all in-session bars; neither chunks nor workers change a bit of them.

    `counts` is filled on the way. What needs no other session is computed by `workers` processes where there
    is more than one; the rest follows in order.

    Args:
        chunks: bars in order of time.
        counts: filled on the way.
        workers: number of processes; 1 computes in this one.
    """
    history = History(conventions=settings.profile, slots=-(-settings.sessions.minutes * 60 // settings.spacing))
    cut = blocks(chunks, settings.sessions, settings.profile, spacing=settings.spacing, counts=counts)
    session = 0
    for block, done in _in_order(cut, settings, workers):
        with np.errstate(invalid="ignore", divide="ignore"):
            found = history.features(block, done.sessions)
        columns = {**dict(zip(done.names, done.features.T, strict=True)), **found}
        yield Rows(
            date=block.bars.date,
            close=block.bars.close,
            session=session + block.session,
            features=_stacked(columns, settings.names),
        )
        session += len(block.starts)


@dataclass(frozen=True, kw_only=True)
class Computed:
    """What a worker hands back of a block: features (bars, names) as float32, and its finished sessions."""

    names: tuple[str, ...]
    features: NDArray[np.float32]
    sessions: FinishedSessions


def _in_order(cut: Iterator[Block], settings: Settings, workers: int) -> Iterator[tuple[Block, Computed]]:
    """Yield computed blocks in order, at most one more than there are workers waiting: memory stays bounded.

    Workers are processes: the many short array operations of a block would wait for each other in threads.
    """
    if workers <= 1:
        yield from ((block, compute(block, settings)) for block in cut)
        return
    with worker_pool(workers) as pool:
        waiting: deque[tuple[Block, Future[Computed]]] = deque()
        for block in cut:
            waiting.append((block, pool.submit(unless_stopped, compute, block, settings)))
            if len(waiting) > workers + 1:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())


def _result(block: Block, future: Future[Computed]) -> tuple[Block, Computed]:
    return block, future.result()


def compute(block: Block, settings: Settings) -> Computed:
    """Compute what needs no summary of another session. NaN arises where the past is too short, on purpose."""
    tick = settings.profile.tick
    with np.errstate(invalid="ignore", divide="ignore"):
        grid = Grid.of(block)
        profiles = session_profiles(block, settings.profile)
        found = {
            **profile_features(block, grid, profiles, settings.profile),
            **session_features(block, grid, settings.sessions, tick),
            **bar_features(block, tick),
        }
    names = tuple(found)
    return Computed(names=names, features=_stacked(found, names), sessions=finished_sessions(block, profiles))


def _stacked(columns: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[np.float32]:
    table = np.empty((len(columns[names[0]]), len(names)), np.float32)
    for place, name in enumerate(names):
        table[:, place] = columns[name]
    return table
