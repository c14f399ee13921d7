"""Zones hold the very profile of each bar, however sessions are cut into spans, pieces and batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.profile_bars import BARS, arrays
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles import zones
from trainer.data.profiles.profile import BarRows, bar_rows, difference_profile
from trainer.data.profiles.zones import LEAST_SPAN, Piece, Zones, changes, pieces, span_of, zones_of


def profile_of(held: Zones, bar: int, first: int, rows: int) -> list[int]:
    """Return the profile of one bar from its cells: the base of its span and what the span's bars so far added."""
    span = held.span[bar]
    begin = held.origin[span]
    end = held.origin[span + 1] if span + 1 < len(held.origin) else len(held.base)
    volumes = held.base[begin:end] + held.more[bar, held.zone[begin:end]]
    edges = held.edges[begin:end]
    found = np.zeros(rows, np.int64)
    for low, high, volume in zip(edges[:-1], edges[1:], volumes, strict=False):
        found[low - first : high - first] = volume
    assert volumes[-1] == 0  # the segment above the last edge is empty
    return found.tolist()


def session(bars: list[tuple[int, int, int, int]], allocation: str) -> BarRows:
    return bar_rows(*arrays(bars), ProfileConventions(allocation=allocation, row_ticks=2))  # type: ignore[arg-type]


@given(
    bars=BARS,
    span=st.integers(1, 6),
    cells=st.sampled_from([1, 20, 150_000]),
    allocation=st.sampled_from(["uniform", "proportional"]),
)
@settings(deadline=None, max_examples=150)
def test_profile_of_each_bar_is_in_the_cells_of_its_span(
    bars: list[tuple[int, int, int, int]], span: int, cells: int, allocation: str
) -> None:
    rows = session(bars, allocation)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "BATCH_CELLS", cells)
        parts = list(pieces(rows, span, ends=allocation == "proportional"))
    held = zones_of(parts, span)
    first, count = int(rows.low.min()), int(rows.high.max() - rows.low.min()) + 1
    for bar in range(len(rows)):
        assert profile_of(held, bar, first, count) == difference_profile(rows[: bar + 1], first, count).tolist()


@given(bars=BARS, span=st.integers(1, 6))
@settings(deadline=None, max_examples=60)
def test_pieces_have_range_and_volume_of_each_bars_profile(bars: list[tuple[int, int, int, int]], span: int) -> None:
    rows = session(bars, "uniform")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "BATCH_CELLS", 1)
        parts: list[Piece] = list(pieces(rows, span, ends=False))
    assert [len(part.total) for part in parts[:-1]] == [span] * (len(parts) - 1)
    for name, expected in (
        ("low", [min(rows.low[: bar + 1]) for bar in range(len(rows))]),
        ("high", [max(rows.high[: bar + 1]) for bar in range(len(rows))]),
        ("total", [sum(rows.volume[: bar + 1]) for bar in range(len(rows))]),
    ):
        assert np.concatenate([getattr(part, name) for part in parts]).tolist() == expected


def test_changes_of_a_bar_add_up_to_nothing_and_ends_have_their_own() -> None:
    bars = BarRows(
        **{name: np.array([n]) for name, n in zip(BarRows.__dataclass_fields__, (3, 5, 10, 2, -4), strict=True)}
    )
    rows, amounts = changes(bars, ends=True)
    assert sorted(zip(rows[:, 0].tolist(), amounts[:, 0].tolist(), strict=True)) == [(3, 12), (4, -2), (5, -4), (6, -6)]
    assert changes(bars, ends=False)[0][:, 0].tolist() == [3, 6]


@pytest.mark.parametrize(("bars", "span"), [(1, LEAST_SPAN), (143, LEAST_SPAN), (144, 12), (400, 20), (10_000, 100)])
def test_span_is_about_the_root_of_the_bars(bars: int, span: int) -> None:
    assert span_of(bars) == span


def test_table_of_zones_is_filled_behind_the_last_of_a_span() -> None:
    rows = session([(0, 1, 1, 2), (5, 0, 3, 1), (0, 6, 2, 3)], "uniform")
    held = zones_of(list(pieces(rows, 1, ends=False)), 1)
    table = held.table(np.arange(len(held.begin) - 1), -1)
    counts = np.diff(held.first, append=len(held.begin) - 1)
    assert [row[row >= 0].tolist() for row in table] == [
        list(range(first, first + count)) for first, count in zip(held.first, counts, strict=True)
    ]
