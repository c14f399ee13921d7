"""Sessions follow a market's calendar and its clock."""

from __future__ import annotations

import numpy as np

from trainer.data.conventions import SessionConventions
from trainer.data.sessions import instants, session_minutes, us_half_day, wall_clock


def test_sessions_follow_daylight_saving_time() -> None:
    """09:30 in New York is 14:30 UTC in winter and 13:30 in summer; clocks changed on 8 March and 1 November 2026."""
    days = np.array(["2026-03-06", "2026-03-09", "2026-10-30", "2026-11-02"], "M8[s]")
    utc, missing = instants(days + np.timedelta64(34_200, "s"), "America/New_York")
    assert not missing.any()
    assert ((utc - days).astype(int) // 60).tolist() == [870, 810, 810, 870]
    assert (wall_clock(utc, "America/New_York") - days == np.timedelta64(34_200, "s")).all()


def test_hour_that_never_was_is_found_and_one_that_was_twice_is_distinguished() -> None:
    missing = instants(np.array(["2026-03-08T02:30:00"], "M8[s]"), "America/New_York")[1]
    assert missing.all()
    twice = np.array(
        ["2026-11-01T01:00:00", "2026-11-01T01:30:00", "2026-11-01T01:00:00", "2026-11-01T01:30:00"], "M8[s]"
    )
    utc = instants(twice, "America/New_York")[0]
    assert (np.diff(utc).astype(int) == 1800).all()
    carried = instants(twice[2:], "America/New_York", utc[1])[0]
    assert (carried == utc[2:]).all()


def test_half_days_are_known_from_the_calendar_alone() -> None:
    days = np.array(["2025-11-28", "2025-12-24", "2025-07-03", "2020-07-03", "2021-12-24", "2025-11-27"], "M8[D]")
    assert us_half_day(days).tolist() == [True, True, True, False, False, False]
    assert session_minutes(days[:1], SessionConventions()).tolist() == [210]
    assert session_minutes(days[:1], SessionConventions(half_days="none")).tolist() == [390]
