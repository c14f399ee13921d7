"""Point of control and value area of small profiles that are drawn by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.value_area import EDGE, grow, peak, required

USUAL = ProfileConventions()


@pytest.mark.parametrize(
    ("total", "share", "reach", "volume"),
    [
        (10, 7000, "at_least", 7),
        (11, 7000, "at_least", 8),
        (10, 7000, "more", 8),
        (11, 7000, "more", 8),
        (0, 7000, "at_least", 0),
        (3, 10_000, "at_least", 3),
        (3, 10_000, "more", 4),
        (2**60, 7000, "at_least", 807045053224792884),
    ],
)
def test_volume_of_the_area_is_whole_and_never_less_than_its_share(
    total: int, share: int, reach: str, volume: int
) -> None:
    conventions = replace(USUAL, value_share=share, reach=reach)
    assert required(np.array([total]), conventions).tolist() == [volume]


def area(rows: list[int], poc: int, **changes: object) -> tuple[int, int]:
    """Return the lowest and the highest row of the area that grows from row `poc`."""
    flat = np.array([EDGE, EDGE, *rows, EDGE, EDGE])
    low, high = grow(flat, np.array([poc + 2]), np.array([sum(rows)]), replace(USUAL, **changes))
    return int(low[0]) - 2, int(high[0]) - 2


@pytest.mark.parametrize(
    ("rows", "poc", "changes", "ends"),
    [
        ([1, 2, 10, 3, 1], 2, {}, (2, 3)),  # 12 of 17 are needed: 10, then the larger neighbour
        ([1, 2, 70, 3, 1], 2, {}, (2, 2)),
        ([2, 2, 4, 2, 2], 2, {"value_tie": "up"}, (1, 4)),
        ([2, 2, 4, 2, 2], 2, {"value_tie": "down"}, (0, 3)),
        ([5, 1, 1], 0, {}, (0, 0)),
        ([5, 1, 1], 0, {"value_share": 9000}, (0, 2)),
        ([1, 1, 5], 2, {"value_share": 9000}, (0, 2)),
        ([1, 1, 5], 2, {"value_share": 10_000, "reach": "more"}, (0, 2)),  # more than all there is: the whole
        ([7], 0, {"value_share": 10_000}, (0, 0)),
        ([4, 1, 6, 3, 3], 2, {"expansion": "two"}, (2, 4)),  # the pair above has 6, that below 5
        ([4, 4, 6, 3, 3], 2, {"expansion": "two"}, (0, 2)),
        ([4, 6, 1], 1, {"expansion": "two", "value_share": 9500}, (0, 2)),  # a pair at an edge is one row
    ],
)
def test_area_grows_to_the_larger_side_until_it_holds_its_share(
    rows: list[int], poc: int, changes: dict[str, object], ends: tuple[int, int]
) -> None:
    assert area(rows, poc, **changes) == ends


def test_areas_of_several_profiles_grow_apart() -> None:
    rows = np.arange(1, 30)
    flat = np.concatenate([[EDGE, EDGE], rows, [EDGE, EDGE], rows[::-1], [EDGE, EDGE]])
    low, high = grow(flat, np.array([30, 33]), np.array([rows.sum(), rows.sum()]), USUAL)
    assert (high[0], low[1]) == (30, 33)
    assert high[0] - low[0] == high[1] - low[1]
    assert flat[low[0] : high[0] + 1].sum() >= 0.7 * rows.sum() > flat[low[0] + 1 : high[0] + 1].sum()


@pytest.mark.parametrize(("tie", "column"), [("low", 1), ("high", 5), ("middle", 3), ("middle_upper", 3)])
def test_point_of_control_among_equals_is_chosen_by_the_rule(tie: str, column: int) -> None:
    table = np.array([[0, 9, 0, 9, 0, 9, 0]])
    before = table.copy()
    assert peak(table, np.array([0]), np.array([6]), replace(USUAL, poc_tie=tie)).tolist() == [column]
    assert np.array_equal(table, before)  # it is written to in between


@pytest.mark.parametrize(("tie", "column"), [("middle", 1), ("middle_upper", 2)])
def test_middle_of_an_even_number_of_rows_is_the_lower_or_the_upper(tie: str, column: int) -> None:
    table = np.array([[9, 9, 9, 9]])
    assert peak(table, np.array([0]), np.array([3]), replace(USUAL, poc_tie=tie)).tolist() == [column]


def test_empty_profile_has_its_point_of_control_within_its_range() -> None:
    table = np.zeros((2, 6), np.int64)
    assert peak(table, np.array([2, 3]), np.array([4, 3]), replace(USUAL, poc_tie="low")).tolist() == [2, 3]
