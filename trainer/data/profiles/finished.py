"""Profiles of finished sessions, and the point of control of several added up.

A session of few rows keeps the volume of every row; one of many keeps segments of rows alike, at most twice its bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.profile import BarRows, session_profiles
from trainer.data.profiles.value_area import Integers, peak
from trainer.data.profiles.zones import changes

FEW_ROWS = 4_000  # of the widest session: up to here a volume for every row is as short as segments


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A profile. edges: lowest row of each segment, and the row above the last; volume: of a row of each segment."""

    edges: Integers
    volume: Integers

    @property
    def of_rows(self) -> bool:
        """Whether every segment is one row."""
        return len(self.volume) == int(self.edges[-1] - self.edges[0])


def finished_profiles(bars: BarRows, starts: Integers) -> list[Finished]:
    """Return the profile of each run of bars begun at one of `starts`."""
    lowest = np.minimum.reduceat(bars.low, starts)
    rows = np.maximum.reduceat(bars.high, starts) - lowest + 1
    if int(rows.max()) > FEW_ROWS:
        ends = [*starts[1:].tolist(), len(bars)]
        return [_in_segments(bars[begin:end]) for begin, end in zip(starts.tolist(), ends, strict=True)]
    flat, place, _ = session_profiles(bars, starts)
    places = zip(lowest.tolist(), place.tolist(), rows.tolist(), strict=True)
    return [
        Finished(edges=np.arange(low, low + count + 1), volume=flat[begin : begin + count].copy())
        for low, begin, count in places
    ]


def _in_segments(bars: BarRows) -> Finished:
    rows, amounts = changes(bars, ends=bool(bars.more_low.any() or bars.more_high.any()))
    return _summed(rows.reshape(-1), amounts.reshape(-1))


def _summed(rows: Integers, amounts: Integers) -> Finished:
    """Return the profile whose volume of a row changes at `rows` by `amounts`; its ends are the outermost of these."""
    order = np.argsort(rows, kind="stable")  # which merges the parts' sorted rows
    rows = rows[order]
    first = np.flatnonzero(np.diff(rows, prepend=rows[0] - 1))
    return Finished(edges=rows[first], volume=np.cumsum(np.add.reduceat(amounts[order], first))[:-1])


def composite_poc(parts: Sequence[Finished], conventions: ProfileConventions) -> int:
    """Return the row of the point of control of all `parts` added up."""
    if all(part.of_rows for part in parts):
        return _poc_of_rows(parts, conventions)
    rows = np.concatenate([part.edges for part in parts])
    amounts = np.concatenate([np.diff(part.volume, prepend=0, append=0) for part in parts])
    return _poc_of_segments(_summed(rows, amounts), conventions)


def _poc_of_rows(parts: Sequence[Finished], conventions: ProfileConventions) -> int:
    first = min(int(part.edges[0]) for part in parts)
    total = np.zeros(max(int(part.edges[-1]) for part in parts) - first, np.int64)
    for part in parts:
        begin = int(part.edges[0]) - first
        total[begin : begin + len(part.volume)] += part.volume
    ends = np.zeros(1, np.int64), np.full(1, len(total) - 1)
    return int(peak(total[np.newaxis], *ends, conventions)[0]) + first


def _poc_of_segments(profile: Finished, conventions: ProfileConventions) -> int:
    """Return the row of highest volume that the tie rule prefers."""
    twice = doubled_middle(profile.edges[:1], profile.edges[-1:] - 1, conventions)
    highest = np.flatnonzero(profile.volume == profile.volume.max())
    rows = np.clip(twice >> 1, profile.edges[highest], profile.edges[highest + 1] - 1)
    return int(rows[np.abs(2 * rows - twice).argmin()])


def doubled_middle(low: Integers, high: Integers, conventions: ProfileConventions) -> Integers:
    """Return twice the row, or place between two rows, to which the tie rule wants the point of control nearest.

    Args:
        low: lowest row of each profile, (profiles,).
        high: highest row of each profile, (profiles,).
    """
    if conventions.poc_tie in ("low", "high"):
        return 2 * (low if conventions.poc_tie == "low" else high)
    return low + high + (conventions.poc_tie == "middle_upper")
