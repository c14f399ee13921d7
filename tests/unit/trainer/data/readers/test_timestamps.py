"""Times in the forms that files have, as instants; what can be read in two ways is refused."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl
import pytest

from trainer.data.readers import timestamps
from trainer.data.readers.timestamps import CLOCKS, DATES, GLUED, TimeFormat, falls, find_format, parse, tidy
from trainer.runtime.errors import TrainerError

ZONE = "America/New_York"


def read(*cells: str | None, zone: str = ZONE, given: str | None = None) -> list[str]:
    """Return the instants of cells, `-` for one that cannot be read."""
    text = pl.Series(cells, dtype=pl.String)
    found = parse(text, find_format(text, "a.csv", given), zone, None)
    return ["-" if bad else str(at) for at, bad in zip(found.at, found.unreadable, strict=True)]


@pytest.mark.parametrize(
    ("cell", "pattern", "instant"),
    [
        ("2024-03-04", "%Y-%m-%d", "2024-03-04T00:00:00"),
        ("2024-3-4", "%Y-%m-%d", "2024-03-04T00:00:00"),
        ("2024/03/14", "%Y/%m/%d", "2024-03-14T00:00:00"),
        ("14.03.2024", "%d.%m.%Y", "2024-03-14T00:00:00"),
        ("14-Mar-2024", "%d-%b-%Y", "2024-03-14T00:00:00"),
        ("Mar 14, 2024", "%b %d, %Y", "2024-03-14T00:00:00"),
        ("2024-03-04T09:30:00", "%Y-%m-%d %H:%M:%S%.f", "2024-03-04T14:30:00"),
        ("  2024-03-04   09:30 ", "%Y-%m-%d %H:%M", "2024-03-04T14:30:00"),
        ("03/14/2024 01:30 PM", "%m/%d/%Y %I:%M %p", "2024-03-14T17:30:00"),
        ("202403040930", "%Y%m%d %H%M", "2024-03-04T14:30:00"),
        ("1709562600", "epoch seconds", "2024-03-04T14:30:00"),
        ("1709562600000", "epoch milliseconds", "2024-03-04T14:30:00"),
        ("1709562600000000", "epoch microseconds", "2024-03-04T14:30:00"),
        ("1709562600000000000", "epoch nanoseconds", "2024-03-04T14:30:00"),
    ],
)
def test_time_in_a_usual_form_is_read(cell: str, pattern: str, instant: str) -> None:
    form = find_format(pl.Series([cell]), "a.csv")
    assert form.pattern == pattern
    assert read(cell) == [instant]


@pytest.mark.parametrize(
    ("cell", "instant"),
    [
        ("2024-03-04 09:30:00Z", "2024-03-04T09:30:00"),
        ("2024-03-04 09:30:00+01:00", "2024-03-04T08:30:00"),
        ("2024-03-04 09:30:00-0530", "2024-03-04T15:00:00"),
        ("2024-03-04 09:30:00+14", "2024-03-03T19:30:00"),
        ("2024-03-04 09:30:00 UTC", "2024-03-04T09:30:00"),
    ],
)
def test_offset_behind_the_clock_decides_the_instant(cell: str, instant: str) -> None:
    assert find_format(pl.Series([cell]), "a.csv").zoned
    assert read(cell, zone="Asia/Tokyo") == [instant]


def test_zone_that_all_times_name_is_that_of_the_file() -> None:
    cells = ["20240304 09:30:00 US/Eastern", "20240304 09:31:00 US/Eastern"]
    assert find_format(pl.Series(cells), "a.csv").zone == "US/Eastern"


def test_days_are_days_however_they_are_written() -> None:
    assert find_format(pl.Series(["2024-03-04 00:00:00", "2024-03-05 00:00:00"]), "a.csv").days
    assert not find_format(pl.Series(["2024-03-04 00:00:00", "2024-03-05 00:00:01"]), "a.csv").days
    assert find_format(pl.Series(["2024-03-04T00:00:00+05:30", "2024-03-05T00:00:00+05:30"]), "a.csv").days
    assert not TimeFormat(pattern="%Y-%m-%d %H:%M", zoned=True, midnight=False).days
    assert read("2024-03-04 00:00+05:30", "2024-03-05 00:00+05:30")[0] == "2024-03-04T00:00:00"  # not the day before
    assert read("2024-03-04 00:00", "2024-03-05 00:00")[0] == "2024-03-04T00:00:00"  # a day belongs to no zone


def test_day_and_month_are_decided_by_a_cell_or_by_the_order() -> None:
    assert find_format(pl.Series(["01/02/2024", "13/02/2024"]), "a.csv").pattern == "%d/%m/%Y"
    assert find_format(pl.Series(["01/12/2024", "02/01/2024", "02/02/2024"]), "a.csv").pattern == "%m/%d/%Y"
    with pytest.raises(TrainerError, match="RM574"):
        find_format(pl.Series(["01/02/2024", "02/03/2024"]), "a.csv")
    assert read("01/02/2024", "02/03/2024", given="%d/%m/%Y") == ["2024-02-01T00:00:00", "2024-03-02T00:00:00"]


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [
        (["24/03/05", "24/03/04", "24/02/29"], "%y/%m/%d"),  # newest first
        (["24-03-05", "24-03-06", "24-03-07"], "%y-%m-%d"),
        (["24.03.05", "24.03.06"], "%y.%m.%d"),
        (["30-05-13", "31-05-13", "01-06-13"], "%d-%m-%y"),
        (["05-30-13", "05-31-13", "06-01-13"], "%m-%d-%y"),
        (["14/03/24", "15/03/24"], "%d/%m/%y"),
        (["14/03/24", "14/03/24"], "%d/%m/%y"),  # nothing decides: the year behind is the more usual
        (["31/12/23", "02/01/24"], "%d/%m/%y"),
        (["12/31/23", "01/02/24"], "%m/%d/%y"),
    ],
)
def test_year_of_two_digits_stands_where_the_days_lie_close_together(cells: list[str], pattern: str) -> None:
    assert find_format(pl.Series(cells), "a.csv").pattern == pattern


def test_day_and_month_of_a_file_with_the_newest_first_are_decided_by_its_order() -> None:
    assert find_format(pl.Series(["02/02/2024", "02/01/2024", "01/12/2024"]), "a.csv").pattern == "%m/%d/%Y"


@pytest.mark.parametrize("cells", [["soon"], [""], []])
def test_cells_without_a_time_are_refused_with_the_first(cells: list[str]) -> None:
    with pytest.raises(TrainerError, match="RM513") as caught:
        find_format(pl.Series(cells, dtype=pl.String), "a.csv")
    assert caught.value.where == "a.csv"


def test_format_is_that_of_most_rows_and_the_others_cannot_be_read() -> None:
    assert read("2024-03-04", "2024-03-05", "soon", None) == ["2024-03-04T00:00:00", "2024-03-05T00:00:00", "-", "-"]


def test_hour_that_no_clock_showed_cannot_be_read() -> None:
    assert read("2024-03-10 01:59", "2024-03-10 02:30", "2024-03-10 03:00")[1] == "-"
    assert read("2024-03-10 01:59", "2024-03-10 02:30", zone="UTC")[1] == "2024-03-10T02:30:00"


def test_row_with_an_offset_among_others_is_read_and_marked() -> None:
    cells = pl.Series(["2024-03-04 09:30:00", "2024-03-04 09:31:00", "2024-03-04 09:32:00-05:00"])
    found = parse(cells, find_format(cells, "a.csv"), ZONE, None)
    assert found.mixed.tolist() == [False, False, True]
    assert str(found.at[2]) == "2024-03-04T14:32:00"
    assert not found.unreadable.any()


@pytest.mark.parametrize(
    ("days", "newest_first"),
    [((3, 2, 1), True), ((3, 3, 1), True), ((1, 2, 3), False), ((3, 1, 2), False), ((2, 1), False), ((1, 1, 1), False)],
)
def test_times_that_only_go_back_stand_newest_first(days: tuple[int, ...], newest_first: bool) -> None:
    text = pl.Series([f"2024-03-{day:02}" for day in days])
    assert falls(text, TimeFormat(pattern="%Y-%m-%d", zoned=False)) is newest_first


def test_instants_keep_their_kind() -> None:
    found = parse(pl.Series(["2024-03-04"]), TimeFormat(pattern="%Y-%m-%d", zoned=False), ZONE, None)
    assert found.at.dtype == np.dtype("M8[s]")
    assert tidy(pl.Series(["2024-3-4 9:30"])).to_list() == ["2024-03-04 9:30"]


def test_pattern_that_reads_a_time_is_never_left_out_for_its_marks() -> None:
    patterns = [*(date + clock for date in DATES for clock in CLOCKS), *GLUED]
    moments = [datetime(2024, 3, 4, 9, 30, 5, 250_000), datetime(2011, 12, 31), datetime(1999, 5, 7, 23, 59, 59)]
    cells = [
        at.strftime(p.replace("%.f", end).replace("%3f", "250"))
        for p in patterns
        for at in moments
        for end in ("", ".5")
    ]
    cells += [cell.replace(" ", "") for cell in cells]
    text = tidy(pl.Series(cells))
    for pattern in patterns:
        for cell in text.filter(timestamps._parsed(text, pattern).is_not_null()).unique():
            assert pattern in timestamps._possible(pl.Series([cell])), (pattern, cell)


def test_patterns_with_other_marks_are_not_tried() -> None:
    possible = timestamps._possible(pl.Series(["2024-03-04 09:30", "2024-03-04 09:31"]))
    assert "%Y-%m-%d %H:%M" in possible
    assert not {"%m/%d/%Y %H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y%m%d"} & set(possible)


@pytest.mark.parametrize("cell", ["1.709510e+18", "1.70951E+12", "2E+09"])
def test_count_of_seconds_that_a_spreadsheet_shortened_is_answered_with_where_its_digits_are(cell: str) -> None:
    with pytest.raises(TrainerError, match="RM513") as caught:
        find_format(pl.Series([cell, cell]), "")
    assert "digits may be lost" in caught.value.next and "--time-format" not in caught.value.next
