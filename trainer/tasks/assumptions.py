"""Assumptions about the data, in a few lines for a person before training starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.conventions import SessionConventions
from trainer.data.features.build_features import DAY_AND_NIGHT
from trainer.data.features.daily_features import FEATURES
from trainer.data.features.history_features import SESSIONS
from trainer.data.loading.chunks import chunks
from trainer.data.readers.bars import Reading, Source
from trainer.data.sessions import has_half_days
from trainer.runtime.errors import TrainerError
from trainer.tasks.prepared import Task

NAMED = 8  # features of a list that are named
NARROW = 1e-3  # of the deviation: a feature whose middle 98 % lie closer together lives from a few rows alone
MANY_OUTSIDE = 0.2  # of the bars, from which other hours are proposed
NEARLY_ALL = 0.98  # of the bars, which day and night keep of futures, whose market pauses for an hour, and not of coins
AROUND_THE_CLOCK = "00:00-24:00"
DAYS_OF_SESSIONS = 7 / 5  # a market may be open on weekends
MANY_SESSIONS = 2  # times the least number, from which too few rows have another cause
MANY_ROWS, FEW_ROWS = 5_000, 1_000  # of a day: above the one, a height that makes no more than the other
SAMPLE = 20_000  # rows that percentiles are taken of


def of_file(source: Source, *, weekend: bool = False) -> list[str]:
    """Return how the file was read, and what its times are taken to be.

    Args:
        source: the file.
        weekend: it has bars of Saturdays.
    """
    facts, bad = source.as_dict(), source.bad
    layout = f", {facts['layout']}" if "layout" in facts else ""
    layout += f", not UTF-8, so as {facts['encoding']}" if "encoding" in facts else ""
    turned = ", newest first, so turned round" if source.newest_first else ""
    lost = sum(bad.dropped.values())
    first = {kind: f", first {bad.unit} {lines[0]:,}" for kind, lines in bad.first.items() if lines}
    kinds = (f"{kind} {n:,}{first.get(kind, '')}" for kind, n in bad.dropped.items())
    dropped = f", {lost:,} {'row' if lost == 1 else 'rows'} dropped ({'; '.join(kinds)})" if lost else ""
    dropped += ", the last line without a line end" if "open_end" in bad.repaired else ""
    columns = ", ".join(f"{role}={name}" for role, name in facts["columns"].items())
    return [f"read: {source.path.name}{layout}{turned}{dropped}; {columns}", times_of(source, weekend=weekend)]


def times_of(source: Source, *, weekend: bool = False) -> str:
    """Return in which zone times are taken, and reasons against the default.

    Args:
        source: the file.
        weekend: it has bars of Saturdays.
    """
    zone = source.zone
    if zone is None:
        return "times: days, in no zone"
    if zone == "in the data":
        return "times: each names its offset from UTC; dates are shown in UTC"
    why = "epochs" if zone == "UTC" and source.times.pattern.startswith("epoch") else "--time-zone"
    why = _against(source, weekend) if why == "--time-zone" and zone == Reading.zone else why
    why = "named in the file" if source.times.zone else why
    return f"times: taken as {zone} ({why}), format {source.times.pattern}; dates are shown in UTC"


def _against(source: Source, weekend: bool) -> str:
    """Return that the zone is the default, and another where the file looks like one of coins or of MetaTrader."""
    layout = (source.dialect and source.dialect.known_as) or ""
    if weekend:
        return "the default; exchanges of coins, which trade on Saturdays as here, write UTC: --time-zone UTC"
    if "MetaTrader" in layout or "<TICKVOL>" in source.columns.names:
        return "the default; MetaTrader writes its server's time, often that of --time-zone Europe/Athens"
    return "the default; --time-zone names another"


def of_sessions(record: dict[str, Any], day_ticks: int) -> str:
    """Return session, price step and row height, and how many bars lie outside, from a feature file's record.

    `day_ticks` is the usual range of a day; where its rows are many, a row height is proposed.
    """
    session, profile, rows = record["conventions"]["session"], record["conventions"]["profile"], record["rows"]
    half = "NYSE's half days" if has_half_days(SessionConventions(**session)) else "no half days"
    rows_of = f"rows of {profile['row_ticks']} ticks{_height(day_ticks, profile['row_ticks'])}"
    return (
        f"sessions: {session['begin']}-{session['end']} {session['zone']}, {half}, bars stamped with their "
        f"{session['stamp']}: {rows['in_sessions']:,} of {rows['bars']:,} bars in {rows['sessions']:,} sessions, "
        f"{rows['outside_sessions']:,} outside are left out{_other_hours(session, rows)}{_other_stamp(session, rows)}; "
        f"tick {profile['tick']:g}, {rows_of}"
    )


def of_days(spacing: int) -> str:
    """Return that there are no sessions, and how far apart bars are where they are longer than days.

    Args:
        spacing: most frequent step between bars in seconds.
    """
    days = round(spacing / 86_400)
    apart = "bars are days" if days < 2 else f"bars are {days} days apart; features and --horizon count bars"
    return f"sessions: none, {apart}"


def _other_stamp(session: Mapping[str, Any], rows: Mapping[str, int]) -> str:
    """Return that bars seem to be stamped with their end: sessions have one at their end, and none at their begin."""
    at_end = rows.get("at_session_end", 0)
    if session["stamp"] == "end" or rows.get("at_session_begin", 0) or at_end < max(1, rows["sessions"]) / 2:
        return ""
    times = f"{at_end:,} bear {session['end']} and none {session['begin']}"
    return f" ({times}, as bars that are stamped with their end do: --bar-time end)"


def _wider(rows: Mapping[str, int]) -> tuple[str, int]:
    """Return the hours that keep nearly all bars, and how many: those of day and night, or around the clock."""
    kept = rows.get("in_day_and_night")
    if kept is None:  # the record of an earlier trainer
        return DAY_AND_NIGHT, 0
    return (DAY_AND_NIGHT, kept) if kept >= NEARLY_ALL * rows["bars"] else (AROUND_THE_CLOCK, rows["bars"])


def _other_hours(session: Mapping[str, Any], rows: Mapping[str, int]) -> str:
    """Return what the hours of day and night would keep, where many bars are outside of the session."""
    hours, kept = _wider(rows)
    taken = f"{session['begin']}-{session['end']}"
    if taken == hours or rows["outside_sessions"] < MANY_OUTSIDE * rows["bars"] or kept <= rows["in_sessions"]:
        return ""
    return f" (--session {hours}, day and night, would keep {kept:,})"


def too_short(error: TrainerError, made: Mapping[str, Any]) -> TrainerError:
    """Return the error for too few rows with its cause: bars outside of the session, or fewer sessions than needed.

    Args:
        error: RM517 of the split.
        made: a feature file's record.
    """
    record, session = made["rows"], made["conventions"]["session"]
    sessions, needed = record["sessions"], SESSIONS + 1
    hopeless = 0 < sessions * DAYS_OF_SESSIONS < needed  # other hours of so few days are no more sessions
    if error.code == "RM517" and _other_hours(session, record) and not hopeless:
        return _outside(error, session, record)
    if error.code != "RM517" or sessions > MANY_SESSIONS * needed:
        return error
    why = f"{record['in_sessions']:,} bars within sessions are {sessions} sessions"
    why += f": features look back over {SESSIONS}, so the first rows are those of session {needed}. {error.why}"
    advice = f"Give bars of more than {needed} sessions, such as a year of them: no option shortens the features' past."
    return TrainerError("RM517", what=error.what, where=error.where, why=why, next=advice)


def _outside(error: TrainerError, session: Mapping[str, Any], rows: Mapping[str, int]) -> TrainerError:
    """Return the error for too few rows of a file with most bars outside of the session, as those of coins have."""
    hours = f"{session['begin']}-{session['end']} {session['zone']}"
    why = (
        f"{rows['outside_sessions']:,} of {rows['bars']:,} bars are outside of the sessions {hours} and left out, and "
    )
    why += f"features look back over {SESSIONS} sessions. {error.why}"
    wider, kept = _wider(rows)
    advice = f"Take day and night with --session {wider}, which keeps {kept:,} bars, or "
    advice += "name the market's own hours with --session and --session-zone; and give more bars."
    return TrainerError("RM517", what=error.what, where=error.where, why=why, next=advice)


def _height(day_ticks: int, row_ticks: int) -> str:
    """Return advice on the height of a row, or nothing where a day has no more than MANY_ROWS."""
    if day_ticks <= MANY_ROWS * row_ticks:
        return ""
    least = day_ticks / FEW_ROWS
    power = 10 ** math.floor(math.log10(least))
    height = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    return f" (a day spans about {day_ticks // row_ticks:,} rows; --row-ticks {height} makes {day_ticks // height:,})"


def of_join(joined: Mapping[str, Any] | None) -> list[str]:
    """Return what the second file came to, from the record of it; nothing where there is none."""
    if joined is None:
        return []
    older, lost = joined["bars_with_an_older_value"], joined["bars_left_out"]
    kept = f", {older:,} with one older than {joined['tolerance_seconds']:,} s (--join-outside drop leaves them out)"
    gone = f", {lost:,} left out without one"
    return [
        f"joined: column {joined['column']} of {joined['name']}, each value known {joined['known']}: "
        f"{joined['bars_joined'] + older:,} bars{kept if older else ''}{gone if lost else ''}"
    ]


def left_out_of_days(features: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the features of days that need a VIX and are not among these."""
    there = {feature["name"] for feature in features}
    return {each.name: "the data has no VIX column" for each in FEATURES if each.needs_vix and each.name not in there}


def of_left_out(features: Mapping[str, str], *, path: Path) -> list[str]:
    """Return which features are left out and how to have them; nothing where all are there.

    Args:
        features: why each is left out, by name.
        path: file of the bars.
    """
    if not features:
        return []
    return [f"left out: {', '.join(features)}: {path.name} has no VIX column; --join FILE takes one from a second file"]


def of_rows(bars: int, used: int, horizon: int, embargo: int, unknown: int) -> str:
    """Return where the bars went.

    Args:
        bars: number of bars in the file.
        used: rows with features and target.
        horizon: bars between a row and its target.
        embargo: bars left out before each later part.
        unknown: bars with too short a past for a feature.
    """
    return (
        f"rows: {used:,} of {bars:,} bars can be learned from; {unknown:,} have too short a past, "
        f"{max(0, bars - used - unknown):,} no target {horizon} bars on; {embargo} are left out before each later part"
    )


def of_features(task: Task) -> str:
    """Return which features are constant in the training part, and which live from a few rows alone."""
    names = [str(feature["name"]) for feature in task.features]
    constant, narrow = unmoved(task.split.train.features)
    parts = [f"{len(names)} in all"]
    parts += [f"constant in the training part, so without use: {_listed(names, constant)}"] if len(constant) else []
    parts += [f"nearly constant but for a few rows: {_listed(names, narrow)}"] if len(narrow) else []
    return "features: " + "; ".join(parts)


def unmoved(features: NDArray[Any]) -> tuple[list[int], list[int]]:
    """Return the columns of `features` (rows, columns) that never change, and those whose spread is a few rows'."""
    parts = [features[piece] for piece in chunks(len(features))]
    low, high = (
        np.min([part.min(axis=0) for part in parts], axis=0),
        np.max([part.max(axis=0) for part in parts], axis=0),
    )
    every = max(1, len(features) // SAMPLE)
    sample = np.asarray(features[::every], np.float64)
    middle = np.subtract(*np.percentile(sample, [99, 1], axis=0))
    narrow = (middle < NARROW * sample.std(axis=0)) & (middle > 0) & (high > low)
    return np.flatnonzero(high == low).tolist(), np.flatnonzero(narrow).tolist()


def _listed(names: Sequence[str], places: Sequence[int]) -> str:
    shown = ", ".join(names[place] for place in places[:NAMED])
    return shown if len(places) <= NAMED else f"{shown} and {len(places) - NAMED} more"
