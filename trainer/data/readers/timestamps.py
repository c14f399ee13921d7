"""Dates and times as people write them, to instants.

The format is found once, from the first rows; a row that is written otherwise is a bad row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.bar import Dates
from trainer.data.readers.forms.clocks import FEW, advice, usual
from trainer.data.sessions import instants
from trainer.runtime.errors import TrainerError

DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y",
    "%m/%d/%y", "%d/%m/%y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d-%b-%y", "%d %b %y", "%B %d, %Y", "%d %B %Y",
    "%d.%m.%y", "%d-%B-%Y", "%b %d %Y", "%d-%m-%y", "%m-%d-%y", "%y/%m/%d", "%y-%m-%d", "%y.%m.%d",
)  # fmt: skip
CLOCKS = ("", " %H:%M", " %H:%M:%S%.f", " %H%M", " %H%M%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S:%3f", "-%H:%M:%S")
GLUED = ("%Y%m%d%H%M", "%Y%m%d%H%M%S", "%Y%m%d%H%M%S%3f")
HOURS = "%Y%m%d%H"
# 2024030409 is an hour: as seconds since 1970 such numbers lie in 2030 and later
GLUED_HOUR = r"^(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])$"
BARE_HOUR = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[ T]\d{2})$"
REPUBLIC = r"^(1\d{2})/(\d{1,2}/\d{1,2})"  # years since 1911, as exchanges in Taiwan write them
EPOCHS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
EPOCH_DIGITS = {9: "seconds", 10: "seconds", 12: "milliseconds", 13: "milliseconds", 15: "microseconds",
                16: "microseconds", 18: "nanoseconds", 19: "nanoseconds"}  # fmt: skip
FIRST_YEAR = 1000  # `%Y` also takes 24 for the year 24, which no market has seen
DAY, WEEK = 86_400, 7 * 86_400  # seconds
SERIAL = r"[2-6]\d{4}(\.\d+)?"  # how a spreadsheet counts the days of 1954 to 2091
SHORTENED = r"\d(\.\d+)?[eE]\+?\d{1,2}"  # how a spreadsheet shows a long count of seconds, with digits lost
ZONE = r"\s*(Z|UTC|GMT|(?:UTC|GMT)?[+-]\d{2}:?\d{2}|(?:UTC|GMT)?[+-]\d{2}|(?:UTC|GMT)[+-]\d)$"
HOUR_ALONE = r" (\d{2})-([AP]M)$"  # 2020-01-31 09-AM, as CryptoDataDownload wrote hours
NAMED_ZONE = r"\s([A-Z][A-Za-z]+/[A-Za-z_/+-]+[0-9]*)$"  # US/Eastern
WEEKDAY = r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "  # as of RFC 1123, and in JavaScript's own words
REMARK = r" \([A-Z][\w .]+\)$"  # (Coordinated Universal Time), behind JavaScript's offset
TIMED_ZONE = r":\d{2}(?:\.\d+)?" + ZONE  # an offset stands behind a time of day; 2014-01-03 has none


@dataclass(frozen=True, kw_only=True)
class TimeFormat:
    """How times are written: a strftime pattern or `epoch <unit>`; `zoned`: each names its offset from UTC.

    midnight: all sampled times are midnight by their own clock, so these are days, however they are written.
    zone: the IANA zone that all times name behind the clock, as Interactive Brokers writes them, or their column.
    """

    pattern: str
    zoned: bool
    midnight: bool = False
    zone: str | None = None

    @property
    def days(self) -> bool:
        """Whether these are days without a time of day; they belong to no zone."""
        return self.pattern in DATES or self.midnight


@dataclass(frozen=True, kw_only=True)
class Times:
    """Parsed times, each of shape (rows,): instants in UTC (days as they are), and what is wrong with them."""

    at: Dates
    unreadable: NDArray[np.bool_]
    mixed: NDArray[np.bool_]  # zoned where the file is not, or the reverse; `at` is right nevertheless


def tidy(text: pl.Series) -> pl.Series:
    """Return times without spaces around, one space before the time of day, months and days with two digits."""
    bare = usual(text.str.strip_chars().str.replace_all(r"\s+", " "))
    bare = bare.str.replace(r"^(\d{4}-\d{2}-\d{2})T", "${1} ")
    bare = bare.str.replace(r"^(\d{4})([-/.])(\d)([-/.])", "${1}${2}0${3}${4}")
    first = bare.head(FEW)  # further rules cost time, and a file is written in one way
    if first.str.contains(WEEKDAY).any():
        bare = bare.str.replace(WEEKDAY, "").str.replace(REMARK, "")
    if bare.str.ends_with("M").any():  # asked first, as a replacement takes ten times as long
        bare = bare.str.replace(HOUR_ALONE, " ${1}:00 ${2}")
    if first.str.contains(REPUBLIC).any():
        bare = _since_1911(bare)
    if first.str.contains(BARE_HOUR).any():
        bare = bare.str.replace(BARE_HOUR, "${1}:00")
    return bare.str.replace(r"^(\d{4}[-/.]\d{2}[-/.])(\d)( |$)", "${1}0${2}${3}")


def _since_1911(text: pl.Series) -> pl.Series:
    """Return dates with years of the common era for those counted since 1911."""
    year = (text.str.extract(REPUBLIC).cast(pl.Int64, strict=False) + 1911).cast(pl.String)
    return (year + "/" + text.str.replace(r"^\d{3}/", "")).fill_null(text)


def falls(text: pl.Series, form: TimeFormat) -> bool:
    """Return whether the times of a sample, written in `form`, only go back: the newest stands first."""
    bare = tidy(text.drop_nulls().head(1000)).str.replace(NAMED_ZONE, "")
    times = _parsed(bare.str.replace(ZONE, "") if form.zoned else bare, form.pattern).drop_nulls().to_numpy()
    return len(times) > 2 and bool((times[1:] <= times[:-1]).all() and times[-1] < times[0])


def find_format(text: pl.Series, where: str, given: str | None = None) -> TimeFormat:
    """Return the format that most of `text` is written in, the first one of equals.

    Args:
        text: the column of timestamps.
        where: path of the file, for messages.
        given: strptime format to use in place of a detected one.

    Raises:
        TrainerError: RM574 where day and month could be either way round, RM513 where nothing fits.
    """
    text = tidy(text.drop_nulls()).head(1000)
    named = text.str.extract(NAMED_ZONE).unique()
    one_zone = str(named[0]) if len(named) == 1 and named[0] is not None else None
    text = text.str.replace(NAMED_ZONE, "") if one_zone else text
    zoned = 2 * int(text.str.contains(TIMED_ZONE).sum()) > len(text)
    bare = text.str.replace(ZONE, "") if zoned else text
    patterns = [given] if given else _possible(bare)
    fits = {pattern: int(_parsed(bare, pattern).is_not_null().sum()) for pattern in patterns}
    most = max(fits.values(), default=0)
    epoch = _epoch(bare) if not given else None
    if epoch == "seconds" and len(bare) and bool(bare.str.contains(GLUED_HOUR).all()):
        return TimeFormat(pattern=HOURS, zoned=False, zone=one_zone)
    if epoch and most < len(bare):
        return TimeFormat(pattern=f"epoch {epoch}", zoned=False, midnight=_are_midnights(bare, f"epoch {epoch}"))
    if not most:
        shown = repr(text[0]) if len(text) else "an empty cell"
        hint = "is no date such as 2014-01-03 or 2014-01-03 09:31, with or without an offset"
        raise TrainerError("RM513", what=f"{shown} {hint}", where=where, next=_advice(text))
    best = [pattern for pattern, count in fits.items() if count == most]
    pattern = _decided(bare, best, where)
    return TimeFormat(pattern=pattern, zoned=zoned, midnight=_are_midnights(bare, pattern), zone=one_zone)


def _are_midnights(bare: pl.Series, pattern: str) -> bool:
    """Return whether all times that can be read are midnight.

    Args:
        bare: times without their offsets.
        pattern: how they are written.
    """
    day_long = _parsed(bare, pattern).drop_nulls().to_numpy().astype("M8[us]").astype(np.int64) % (86_400 * 10**6) == 0
    return bool(day_long.all())


def _possible(text: pl.Series) -> list[str]:
    """Return the patterns with the same marks between digits and letters as some of `text`: most are none of these.

    A space in a pattern also stands for none; a dot may follow before the fraction of a second.
    """
    marks = set(text.str.replace_all(r"[\p{L}\p{N}\s]", "").unique())
    patterns = [*(date + clock for date in DATES for clock in CLOCKS), *GLUED]
    return [pattern for pattern in patterns if not marks.isdisjoint(_marks(pattern))]


def _marks(pattern: str) -> tuple[str, str]:
    own = re.sub(r"%\.f|%3f|%\w|\s", "", pattern)
    return own, own + "." * ("%.f" in pattern)


def _advice(text: pl.Series) -> str:
    if len(text) and re.fullmatch(SERIAL, text[0]):
        return "It may be a spreadsheet's number of a day: give the column a date format there, and export again."
    if len(text) and re.fullmatch(SHORTENED, text[0].strip()):
        return "The number is in scientific notation, and digits may be lost: export times as whole numbers."
    known = advice(text[0]) if len(text) else ""
    return known or "Name its format with --time-format."


def _decided(text: pl.Series, patterns: list[str], where: str) -> str:
    """Return the pattern; of several that read different times, the only one under which these are in order."""
    readings = {pattern: _parsed(text, pattern) for pattern in patterns}
    earliest = min(int(reading.is_not_null().arg_max() or 0) for reading in readings.values())
    readings = {pattern: reading for pattern, reading in readings.items() if reading[earliest] is not None}
    first, *others = readings
    different = [pattern for pattern in others if not readings[pattern].equals(readings[first])]
    if not different:
        return first
    for known in (_rises, _falls):
        ordered = [pattern for pattern in readings if known(readings[pattern])]
        if len(ordered) == 1:
            return ordered[0]
    if len(near := _days_together(readings)) == 1:
        return near[0]
    sides = _years_apart(readings)
    if len(sides) < len(readings):
        return _decided(text, sides, where)
    what = f"{text[earliest]!r} can be read as {first} and as {different[0]}"
    advice = f"Name the right one: --time-format '{first}' or --time-format '{different[0]}'."
    raise TrainerError("RM574", what=what, where=where, next=advice)


def _years_apart(readings: dict[str, pl.Series]) -> list[str]:
    """Return the patterns that put a year of two digits where the times lie closer together; behind, where equal.

    24/03/05 and 24/03/06 are days of 2024, not of the years 2005 and 2006.
    """
    known = {pattern: times.drop_nulls().to_numpy().astype(np.int64) for pattern, times in readings.items()}
    spans = {pattern: int(times.max() - times.min()) for pattern, times in known.items()}
    front, behind = ({p: s for p, s in spans.items() if p.startswith("%y") is side} for side in (True, False))
    if not front or not behind:
        return list(readings)
    return list(front if min(front.values()) < min(behind.values()) else behind)


def _days_together(readings: dict[str, pl.Series]) -> list[str]:
    """Return the patterns under which bars of minutes or hours have no gap of more than WEEK; none where days count.

    11/5/2019 9:31 and 11/6/2019 9:31 are days of one week, not the fifths and sixths of a month's eleventh.
    """
    found = []
    for pattern, times in readings.items():
        steps = np.abs(np.diff(times.drop_nulls().to_numpy().astype("M8[s]").astype(np.int64)))
        if len(steps) and int(np.median(steps)) < DAY and int(steps.max()) <= WEEK:
            found.append(pattern)
    return found


def _rises(times: pl.Series) -> bool:
    known = times.drop_nulls().to_numpy()
    return len(known) > 1 and bool((known[1:] > known[:-1]).all())


def _falls(times: pl.Series) -> bool:
    return _rises(times.reverse())


def _epoch(text: pl.Series) -> str | None:
    digits = text.filter(text.str.contains(r"^\d{9,19}(\.0+)?$"))
    if len(digits) * 2 < max(1, len(text)):
        return None
    return EPOCH_DIGITS.get(len(digits[0].partition(".")[0]))


def _parsed(text: pl.Series, pattern: str) -> pl.Series:
    """Return times in microseconds, null where `text` is not written so."""
    if pattern.startswith("epoch "):
        return _epochs(text.str.replace(r"\.0+$", ""), pattern.removeprefix("epoch "))
    if pattern == HOURS:  # polars takes no hour without a minute
        return _parsed(text + "00", "%Y%m%d%H%M")
    if re.search(r"%[HI]", pattern):
        read = text.str.to_datetime(pattern, strict=False, time_unit="us", time_zone=None, exact=True)
    else:
        read = text.str.to_date(pattern, strict=False, exact=True).cast(pl.Datetime("us"))
    return read.set(read.dt.year() < FIRST_YEAR, None)


def _epochs(text: pl.Series, usual: str) -> pl.Series:
    """Return times counted in the `usual` unit, or in that of their own number of digits: months of one market are
    joined that were exported in milliseconds and in microseconds."""
    number, digits = text.cast(pl.Int64, strict=False), text.str.len_chars()
    read = _in_microseconds(number, usual)
    for unit in EPOCHS:
        own = digits.is_in([count for count, name in EPOCH_DIGITS.items() if name == unit]).fill_null(False)
        if unit != usual and own.any():
            read = _in_microseconds(number, unit).zip_with(own, read)
    return read.cast(pl.Datetime("us"))


def _in_microseconds(number: pl.Series, unit: str) -> pl.Series:
    scale = EPOCHS[unit]
    return number * (10**6 // scale) if scale <= 10**6 else number // 1000


def parse(text: pl.Series, form: TimeFormat, zone: str, previous: np.datetime64 | None) -> Times:
    """Return the instants of `text`; times without an offset are wall clock in `zone`.

    `previous` is the instant before the first row: it decides which of two equal hours a clock shows.

    Args:
        text: the column of timestamps.
        zone: IANA time zone of times without an offset.
        previous: instant of the last row before these; None for the first chunk.
    """
    text = tidy(text)
    text = text.str.replace(NAMED_ZONE, "") if form.zone else text
    offsets = text.str.extract(ZONE) if form.zoned else None
    bare = text.str.replace(ZONE, "") if form.zoned else text
    read = _parsed(bare, form.pattern)
    odd = _odd(text, read, offsets, form)
    if odd.any():
        bare = text.str.replace(ZONE, "")
        read, offsets = _read_odd(bare, odd, form), text.str.extract(TIMED_ZONE)
    unreadable = read.is_null().to_numpy()
    wall = read.fill_null(pl.lit(0).cast(pl.Datetime("us"))).to_numpy().astype("M8[s]")
    at, missing = wall.copy(), np.zeros(len(wall), np.bool_)
    if not form.days and not form.pattern.startswith("epoch"):
        zoned = _has_zone(offsets, len(wall))
        if not zoned.all():
            local, absent = instants(wall, zone, previous)
            at, missing = np.where(zoned, wall, local), absent & ~zoned
        if offsets is not None and zoned.any():
            at = np.where(zoned, wall - _seconds(offsets), at)
    return Times(at=at.astype("M8[s]"), unreadable=unreadable | missing, mixed=odd & ~unreadable)


def _read_odd(bare: pl.Series, odd: NDArray[np.bool_], form: TimeFormat) -> pl.Series:
    """Return all times where some are of another kind, which may also be written in another pattern."""
    read = _parsed(bare, form.pattern)
    for pattern in (date + clock for date in DATES[:3] for clock in CLOCKS[1:3]):
        other = _parsed(bare, pattern).zip_with(pl.Series(odd), pl.Series([None] * len(bare), dtype=pl.Datetime("us")))
        read = read.fill_null(other)
    return read


def _odd(text: pl.Series, read: pl.Series, offsets: pl.Series | None, form: TimeFormat) -> NDArray[np.bool_]:
    """Return which rows name an offset where the file does not, or name none where it does."""
    if offsets is not None:
        return (offsets.is_null() & text.is_not_null() & (text != "")).fill_null(False).to_numpy()
    suspects = read.is_null() & text.is_not_null()
    if form.days or form.pattern.startswith("epoch") or not suspects.any():
        return np.zeros(len(text), np.bool_)
    return (suspects & text.str.contains(TIMED_ZONE)).fill_null(False).to_numpy()


def _has_zone(offsets: pl.Series | None, rows: int) -> NDArray[np.bool_]:
    return np.zeros(rows, np.bool_) if offsets is None else offsets.is_not_null().to_numpy()


def _seconds(offsets: pl.Series) -> NDArray[Any]:
    """Return each offset from UTC, 0 where there is none."""
    found = offsets.unique().drop_nulls().to_list()
    table = {text: _offset(text) for text in found}
    return offsets.replace_strict(table, default=0, return_dtype=pl.Int64).to_numpy().astype("m8[s]")


def _offset(text: str) -> int:
    if text in ("Z", "UTC", "GMT"):
        return 0
    sign, digits = text.lstrip("UTCGM")[0], text.lstrip("UTCGM+-").replace(":", "")
    digits = digits.zfill(2).ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if sign == "-" else seconds
