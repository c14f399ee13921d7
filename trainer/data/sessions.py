"""Wall clocks, daylight saving time and sessions. polars brings the time zone data, so an image needs none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Dates
from trainer.data.conventions import SessionConventions
from trainer.runtime.errors import TrainerError

if TYPE_CHECKING:
    import polars as pl

DAY = 86_400  # seconds
# Minutes after midnight, on the clocks of these zones: NYSE closes at 13:00 in New York on its half days.
HALF_DAY_END = {"America/New_York": 780, "US/Eastern": 780, "EST5EDT": 780, "America/Chicago": 720, "US/Central": 720}

Integers = NDArray[np.int64]


def wall_clock(utc: Dates, zone: str) -> Dates:
    """Return what the clocks in `zone` show at each instant, second resolution.

    Raises:
        TrainerError: RM573 for a zone that does not exist.
    """
    import polars as pl

    local = _in_zone(pl.Series(utc.astype("M8[us]")).dt.replace_time_zone("UTC").dt, "convert", zone)
    return local.dt.replace_time_zone(None).to_numpy().astype("M8[s]")


def instants(local: Dates, zone: str, previous: np.datetime64 | None = None) -> tuple[Dates, NDArray[np.bool_]]:
    """Return the UTC instant of each wall clock time in `zone`, and which of them never existed.

    An hour that clocks show twice is taken as the first one until the times step back within it, or where
    it would not be later than `previous`, the instant before the first of these.

    Args:
        local: wall clock times, shape (rows,).
        zone: IANA time zone.
        previous: instant of the last row before these; None for the first chunk.
    """
    import polars as pl

    clock = pl.Series(local.astype("M8[us]")).dt
    first = _in_zone(clock, "replace", zone, ambiguous="earliest")
    second = _in_zone(clock, "replace", zone, ambiguous="latest")
    missing = first.is_null().to_numpy()
    early, late = (_utc_seconds(series) for series in (first, second))
    twice = early != late
    if twice.any():
        early[twice] = np.where(_second_pass(local, twice, late=_is_late(early, previous)), late, early)[twice]
    return early, missing


def _in_zone(
    clock: pl.series.datetime.DateTimeNameSpace, how: str, zone: str, ambiguous: str = "earliest"
) -> pl.Series:
    import polars as pl

    try:
        if not zone:
            raise ValueError("no zone")
        if how == "convert":
            return clock.convert_time_zone(zone)
        return clock.replace_time_zone(zone, ambiguous=ambiguous, non_existent="null")  # type: ignore[arg-type]
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise TrainerError("RM573", what=f"{zone!r} is no time zone of the IANA data base") from error


def _utc_seconds(series: pl.Series) -> Dates:
    shown = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return shown.to_numpy().astype("M8[s]").copy()


def _is_late(early: Dates, previous: np.datetime64 | None) -> bool:
    return previous is not None and bool(early[0] <= previous)


def _second_pass(local: Dates, twice: NDArray[np.bool_], *, late: bool) -> NDArray[np.bool_]:
    """Return which times lie after a step back since their run of ambiguous times began; `late`: the first does."""
    back = np.concatenate([[late and bool(twice[0])], (local[1:] <= local[:-1]) & twice[1:] & twice[:-1]])
    begins = twice & ~np.concatenate([[False], twice[:-1]])
    begins[0] = False
    steps = np.cumsum(back)
    before = np.maximum.accumulate(np.where(begins, steps, 0))
    return np.asarray(steps > before)


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The place of each bar in its session, shape (bars,).

    day: the session's date; second: from the session's begin to the bar's close; inside: whether the bar
    belongs to the session at all.
    """

    day: NDArray[np.datetime64]
    second: Integers
    inside: NDArray[np.bool_]


def session_clock(utc: Dates, conventions: SessionConventions, spacing: int) -> Clock:
    """Return the place of each bar; `spacing` is the length of a bar in seconds.

    Args:
        utc: instants in UTC, shape (bars,).
        spacing: length of a bar in seconds.
    """
    local = wall_clock(utc, conventions.zone).astype(np.int64)
    begin = local - (spacing if conventions.stamp == "end" else 0) - conventions.begin_minute * 60
    day, second = np.divmod(begin, DAY)
    over_midnight = conventions.begin_minute + conventions.minutes > DAY // 60
    return Clock(
        day=(day + over_midnight).astype("M8[D]"),
        second=second + spacing,
        inside=second < conventions.minutes * 60,
    )


def session_minutes(day: NDArray[np.datetime64], conventions: SessionConventions) -> Integers:
    """Return the scheduled length of each session in minutes; a half day is known before it begins."""
    full = np.full(len(day), conventions.minutes, np.int64)
    if not has_half_days(conventions):
        return full
    return np.where(us_half_day(day), HALF_DAY_END[conventions.zone] - conventions.begin_minute, full)


def has_half_days(conventions: SessionConventions) -> bool:
    """Return whether some days of these sessions end early: in a zone of NYSE's alone, where its end is within."""
    short = HALF_DAY_END.get(conventions.zone, 0) - conventions.begin_minute  # no other market keeps NYSE's calendar
    over_midnight = conventions.begin_minute + conventions.minutes > DAY // 60
    return conventions.half_days != "none" and 0 < short < conventions.minutes and not over_midnight


def us_half_day(day: NDArray[np.datetime64]) -> NDArray[np.bool_]:
    """Return which days are half days by NYSE's rule (nyse.com, Holidays and Trading Hours).

    The Friday after Thanksgiving (fourth Thursday of November); 24 December from Monday to Thursday; 3 July
    from Monday to Thursday, where 4 July is a weekday. Exceptions of single years are not known here.
    """
    months = day.astype("M8[M]")
    month, date = months.astype(np.int64) % 12 + 1, (day - months.astype("M8[D]")).astype(np.int64) + 1
    weekday = (day.astype(np.int64) + 3) % 7  # 0 is Monday
    after_thanksgiving = (month == 11) & (weekday == 4) & (date >= 23) & (date <= 29)
    christmas_eve = (month == 12) & (date == 24) & (weekday < 4)
    third_of_july = (month == 7) & (date == 3) & (weekday < 4)
    return np.asarray(after_thanksgiving | christmas_eve | third_of_july)
