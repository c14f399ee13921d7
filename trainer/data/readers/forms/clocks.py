"""Dates and times as further programs and countries write them, brought to one of the usual forms.

Whether a form occurs is looked up in the first rows, since each rule costs time and a file is written in one way.
"""

from __future__ import annotations

import re

import polars as pl

FEW = 100  # rows
RULES: tuple[tuple[str, str], ...] = (
    # 2024年3月4日, also with a clock; Korea writes its own words there
    (r"^(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]", "${1}-${2}-${3}"),
    (r"(\d{1,2})\s?[時时시]\s?(\d{1,2})\s?[分분]?$", "${1}:${2}"),
    (r"(\d)[\s,]*[(（]?[一二三四五六日月火水木金土월화수목금토일][)）]?$", "${1}"),  # a day of the week  # noqa: RUF001
    (r", (\d{1,2}:\d{2})", " ${1}"),  # 3/14/2024, 9:30 AM, as browsers write it
    (r"\s?([AaPp])\.\s?[Mm]\.$", " ${1}M"),
    (r"^(\d{1,2}[A-Za-z]{3}\d{2,4}):(\d{2}:\d{2})", "${1} ${2}"),  # SAS: 04MAR2024:09:30:00
    (r" (\d{1,2})[.:](\d{2}) Uhr$", " ${1}:${2}"),
    (r" (\d{1,2})h(\d{2})$", " ${1}:${2}"),
    (r"^(\d{1,2}[./-]\d{1,2}[./-]\d{4}) (\d{1,2})\.(\d{2})$", "${1} ${2}:${3}"),
    (r"^(\d{1,2}[./-]\d{1,2}[./-]\d{4}) (\d{1,2})\.(\d{2})\.(\d{2})$", "${1} ${2}:${3}:${4}"),
)
MONTH = r"^(\d{4})([-/.])(\d{1,2})$"  # read as its first day
ABBREVIATED = re.compile(r"\d ?([A-Z]{3,4})$")
MIDNIGHTS = re.compile(r"\d{1,8}")
WORDS = re.compile(r"[^\W\d_]{3,}")


def usual(text: pl.Series) -> pl.Series:
    """Return times in a usual form where they are written in one of these.

    Args:
        text: times without spaces around them.
    """
    first = text.head(FEW)
    for pattern, form in RULES:
        if first.str.contains(pattern).any():
            text, first = text.str.replace(pattern, form), first.str.replace(pattern, form)
    known = first.drop_nulls()
    if len(known) and known.str.contains(MONTH).all():  # among days it would be a day that was cut off
        text = text.str.replace(MONTH, "${1}${2}${3}${2}01")
    return text


def clock_digits(cells: pl.Series) -> int:
    """Return how many digits a clock of digits alone has with its zeros in front, 0 for another clock.

    Args:
        cells: the first rows of a column of times of day: 930 is half past nine, 93000 too.
    """
    text = cells.cast(pl.String).str.strip_chars().drop_nulls()
    if not len(text) or not text.str.contains(r"^\d{1,6}$").all():
        return 0
    number = text.cast(pl.Int64)
    longest = max(map(len, text.to_list()))
    return 6 if longest > 4 or bool(((number > 2359) | (number % 100 > 59)).any()) else 4


def advice(cell: str) -> str:
    """Return the next step for a time that cannot be read, "" where nothing is known about its form.

    Args:
        cell: the time as it is written.
    """
    if found := ABBREVIATED.search(cell):
        remove = f"{found[1]} stands for several zones: remove it, as with `sed 's/ {found[1]}//' FILE > OTHER`, "
        return remove + "and name the zone: --time-zone America/New_York."
    if MIDNIGHTS.fullmatch(cell) and int(cell) < 86_400_000:
        return "A number this small may count from midnight, as QuantConnect's files do: put the day in front of it."
    if WORDS.search(cell) and re.search(r"\d", cell):
        return "Names of months are read in English; write dates as 2024-03-04, or name the format with --time-format."
    return ""
