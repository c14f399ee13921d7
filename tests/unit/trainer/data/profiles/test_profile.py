"""Profiles against an oracle that loops over bars and rows, for every convention."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.conventions import VOLUME_BITS, ProfileConventions
from trainer.data.profiles import developing, finished, segments, zones
from trainer.data.profiles.developing import developing_levels
from trainer.data.profiles.finished import composite_poc, finished_profiles
from trainer.data.profiles.profile import BarRows, Levels, bar_rows, difference_profile, session_levels
from trainer.runtime.errors import TrainerError

CONVENTIONS = st.builds(
    ProfileConventions,
    tick=st.just(0.25),
    row_ticks=st.integers(1, 3),
    rounding=st.sampled_from(["floor", "nearest", "ceil"]),
    row_origin=st.integers(0, 3),
    allocation=st.sampled_from(["uniform", "close", "proportional"]),
    rows=st.sampled_from(["dense", "occupied"]),
    poc_tie=st.sampled_from(["middle", "middle_upper", "low", "high"]),
    expansion=st.sampled_from(["one", "two"]),
    value_tie=st.sampled_from(["up", "down"]),
    value_share=st.sampled_from([1, 5000, 6827, 7000, 10_000]),
    reach=st.sampled_from(["at_least", "more"]),
)
# ticks below, body, ticks above, volume: few values, so that ties are common
BARS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 6), st.integers(0, 4)), min_size=1)


def arrays(bars: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    low, body, top, volume = np.array(bars, dtype=float).T
    return (100 + low) * 0.25, (100 + low + body + top) * 0.25, (100 + low + body) * 0.25, volume


def oracle(bars: list[tuple[int, int, int, int]], c: ProfileConventions) -> tuple[int, int, int, int, int]:
    """Rows of POC, value area high and low, then the POC's volume and the total; one bar and one row at a time."""
    counts: dict[int, int] = {}
    for low, body, top, volume in bars:
        ticks = [100 + low + body] * 2 if c.allocation == "close" else [100 + low, 100 + low + body + top]
        first, last = (row_of(tick - c.row_origin, c) for tick in ticks)
        if c.allocation == "proportional" and ticks[0] < ticks[1]:
            for tick in range(*ticks):  # from each tick to the next lies one row
                row = row_of(tick - c.row_origin, c)
                counts[row] = counts.get(row, 0) + volume * 2**VOLUME_BITS // (ticks[1] - ticks[0])
            continue
        share = volume * 2**VOLUME_BITS // (last - first + 1)
        for row in range(first, last + 1):
            counts[row] = counts.get(row, 0) + share
    rows = list(range(min(counts), max(counts) + 1))
    if c.rows == "occupied":
        rows = [row for row in rows if counts.get(row, 0)] or rows[:1]
    volumes = [counts.get(row, 0) for row in rows]
    poc = oracle_poc(volumes, c)
    low, high = oracle_area(volumes, poc, c)
    return rows[poc], rows[high], rows[low], volumes[poc], sum(volumes)


def row_of(tick: int, c: ProfileConventions) -> int:
    exact = Fraction(tick, c.row_ticks)
    if c.rounding == "floor":
        return exact.__floor__()
    return exact.__ceil__() if c.rounding == "ceil" else (exact + Fraction(c.row_ticks // 2, c.row_ticks)).__floor__()


def oracle_poc(volumes: list[int], c: ProfileConventions) -> int:
    best = [place for place, volume in enumerate(volumes) if volume == max(volumes)]
    if c.poc_tie in ("low", "high"):
        return best[0 if c.poc_tie == "low" else -1]
    middle = Fraction(len(volumes) - (c.poc_tie == "middle"), 2)
    return min(best, key=lambda place: (abs(place - middle), place))


def oracle_area(volumes: list[int], poc: int, c: ProfileConventions) -> tuple[int, int]:
    wanted, step = Fraction(sum(volumes) * c.value_share, 10_000), 2 if c.expansion == "two" else 1
    low = high = poc

    def complete() -> bool:
        held = sum(volumes[low : high + 1])
        return held > wanted or (c.reach == "at_least" and held == wanted) or held == sum(volumes)

    while not complete():
        above, below = volumes[high + 1 : high + 1 + step], volumes[max(0, low - step) : low]
        up = not below or (bool(above) and (sum(above), c.value_tie == "up") > (sum(below), c.value_tie == "down"))
        low, high = (low, high + len(above)) if up else (low - len(below), high)
    return low, high


def found(levels: Levels, bar: int) -> tuple[int, ...]:
    return tuple(int(getattr(levels, name)[bar]) for name in ("poc", "high", "low", "peak", "total"))


@given(bars=BARS, c=CONVENTIONS, cut=st.integers(0, 10))
@settings(deadline=None, max_examples=300)
def test_developing_and_finished_profiles_are_the_oracles(
    bars: list[tuple[int, int, int, int]], c: ProfileConventions, cut: int
) -> None:
    cut = min(cut, len(bars) - 1)
    starts = np.array([0, cut] if cut else [0])
    rows = bar_rows(*arrays(bars), c)
    growing, finished = developing_levels(rows, starts, c), session_levels(rows, starts, c)
    for session, (start, end) in enumerate(zip(starts, [*starts[1:], len(bars)], strict=True)):
        for bar in range(start, end):
            assert found(growing, bar) == oracle(bars[start : bar + 1], c)
        assert found(finished, session) == oracle(bars[start:end], c)


@given(bars=BARS, c=CONVENTIONS, cells=st.integers(1, 400))
@settings(deadline=None, max_examples=60)
def test_tile_size_changes_no_profile(bars: list[tuple[int, int, int, int]], c: ProfileConventions, cells: int) -> None:
    rows, starts = bar_rows(*arrays(bars), c), np.array([0])
    one = developing_levels(rows, starts, c)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(developing, "TILE_CELLS", cells)
        other = developing_levels(rows, starts, c)
    assert all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in vars(one))


@given(bars=BARS, order=st.randoms(use_true_random=False))
def test_order_of_bars_changes_no_bit_of_a_profile(bars: list[tuple[int, int, int, int]], order: object) -> None:
    c = ProfileConventions()
    rows = bar_rows(*arrays(bars), c)
    places = list(range(len(bars)))
    order.shuffle(places)  # type: ignore[attr-defined]
    mixed = BarRows(**{name: values[places] for name, values in vars(rows).items()})
    first, height = int(rows.low.min()), int(rows.high.max() - rows.low.min()) + 1
    assert difference_profile(rows, first, height).tobytes() == difference_profile(mixed, first, height).tobytes()


def test_worked_example_equals_the_computation_by_hand() -> None:
    """Six rows of 1, 3, 6, 4, 2, 1 contracts at their closes: POC 6; 70 % of 17 is 11.9; 6 + 4 + 3 reaches it."""
    c = ProfileConventions(tick=1.0, allocation="close")
    close = np.arange(6.0) + 50
    levels = session_levels(bar_rows(close, close, close, np.array([1.0, 3, 6, 4, 2, 1]), c), np.array([0]), c)
    assert found(levels, 0)[:3] == (52, 53, 51)
    pair = replace(c, expansion="two")  # 4 + 2 above, 3 + 1 below: 6 + 6 reaches 11.9 at once
    levels = session_levels(bar_rows(close, close, close, np.array([1.0, 3, 6, 4, 2, 1]), c), np.array([0]), pair)
    assert found(levels, 0)[:3] == (52, 54, 52)


def test_volumes_that_cannot_be_counted_exactly_are_refused() -> None:
    close = np.full(3, 50.0)
    with pytest.raises(TrainerError, match="RM571"):
        bar_rows(close, close, close, np.full(3, 1e12), ProfileConventions())


def test_price_far_from_all_others_is_refused_not_computed() -> None:
    low, high = np.array([50.0, 2e6]), np.array([50.0, 2e6])
    c = ProfileConventions()
    with pytest.raises(TrainerError, match="RM572"):
        developing_levels(bar_rows(low, high, high, np.ones(2), c), np.array([0]), c)


@pytest.mark.parametrize("wrong", [{"tick": 0.0}, {"row_ticks": 0}, {"value_share": 0}, {"expansion": "three"}])
def test_wrong_conventions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(TrainerError, match="RM500"):
        ProfileConventions(**wrong)  # type: ignore[arg-type]


@given(
    bars=BARS,
    c=CONVENTIONS,
    cut=st.integers(0, 10),
    span=st.integers(1, 9),
    cells=st.sampled_from([1, 40, 400]),
    scale=st.sampled_from([1, 1, 37]),
)
@settings(deadline=None, max_examples=400)
def test_segment_levels_for_any_span_and_batch_equal_those_of_rows(
    bars: list[tuple[int, int, int, int]], c: ProfileConventions, cut: int, span: int, cells: int, scale: int
) -> None:
    c = replace(c, rows="dense", expansion="one")
    wide = [(low * scale, body * scale, top, volume) for low, body, top, volume in bars]
    rows = bar_rows(*arrays(wide), c)
    starts = np.array([0, min(cut, len(bars) - 1)] if min(cut, len(bars) - 1) else [0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(developing, "MANY_ROWS", 10**9)
        patch.setattr(segments, "span_of", lambda bars: span)
        for module in (segments, zones):
            patch.setattr(module, "BATCH_CELLS", cells)
        assert_same(segments.segment_levels(rows, starts, c), developing_levels(rows, starts, c))


@pytest.mark.parametrize("allocation", ["uniform", "proportional"])
@pytest.mark.parametrize(("row_ticks", "most"), [(1, 3), (7, 2000)])  # few volumes: many rows tie
def test_segment_levels_of_long_sessions_with_gaps_equal_those_of_rows(
    monkeypatch: pytest.MonkeyPatch, allocation: Literal["uniform", "proportional"], row_ticks: int, most: int
) -> None:
    rng = np.random.default_rng(most + row_ticks)
    close = 9000 + np.cumsum(rng.integers(-60, 61, 900)) + np.where(np.arange(900) % 450 > 300, 2500, 0)
    low, high = close - rng.integers(0, 90, 900), close + rng.integers(0, 90, 900)
    volume = np.where(rng.random(900) < 0.3, 0, rng.integers(1, most, 900)).astype(float)
    c = ProfileConventions(allocation=allocation, row_ticks=row_ticks)
    rows, starts = bar_rows(low * 0.25, high * 0.25, close * 0.25, volume, c), np.array([0, 1, 40, 450])
    fast = developing_levels(rows, starts, c)
    monkeypatch.setattr(developing, "MANY_ROWS", 10**9)
    assert_same(fast, developing_levels(rows, starts, c))


@pytest.mark.parametrize(("poc_tie", "expected"), [("middle", 2), ("middle_upper", 8), ("low", 2), ("high", 8)])
def test_segment_levels_of_two_peaks_in_one_zone_follow_the_tie_rule(
    monkeypatch: pytest.MonkeyPatch, poc_tie: Literal["middle", "middle_upper", "low", "high"], expected: int
) -> None:
    low, high = np.array([0, 2, 8, 0, 0, 0]), np.array([10, 2, 8, 10, 10, 10])
    none = np.zeros(6, np.int64)
    rows = BarRows(low=low, high=high, share=np.array([1, 4, 4, 1, 0, 1]), more_low=none, more_high=none)
    monkeypatch.setattr(segments, "span_of", lambda bars: 3)
    levels = segments.segment_levels(rows, np.array([0]), ProfileConventions(poc_tie=poc_tie))
    assert levels.poc[2:].tolist() == [expected] * 4


@given(bars=BARS, c=CONVENTIONS, cut=st.integers(1, 10))
@settings(deadline=None, max_examples=150)
def test_composite_poc_of_segments_equals_that_of_rows(
    bars: list[tuple[int, int, int, int]], c: ProfileConventions, cut: int
) -> None:
    c = replace(c, rows="dense")
    rows, starts = bar_rows(*arrays(bars), c), np.array([0, cut] if cut < len(bars) else [0])
    of_rows = finished_profiles(rows, starts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finished, "FEW_ROWS", 0)
        of_segments = finished_profiles(rows, starts)
    assert all(part.of_rows for part in of_rows)
    expected = oracle(bars, c)[0]
    for parts in (of_rows, of_segments, [of_rows[0], *of_segments[1:]]):
        assert composite_poc(parts, c) == expected


def assert_same(actual: Levels, expected: Levels) -> None:
    for name in vars(expected):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)
