"""Values that may stand for something else than they say: -999 for a missing value, Yes and yes for one class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from trainer.data.tables.encoding import Column, Flags, Parsed
from trainer.runtime.events import say
from trainer.runtime.short_names import shortened
from trainer.tasks.tables.row_policy import Reading

SENTINELS = (
    *(-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, -999999.0, -200.0, -32768.0, -2147483648.0, -999.25, -9999.99),
    *(99.0, 999.0, 9999.0, 99999.0, 999999.0, 32767.0, 65535.0, 2147483647.0, 9999.99),
)
TOTALS = frozenset({
    *("total", "totals", "grand total", "sum", "all", "average", "summe", "gesamt", "insgesamt", "totale", "totaal"),
    *("somme", "suma", "soma", "razem", "celkem", "\u0438\u0442\u043e\u0433\u043e", "\u5408\u8ba1", "\u5408\u8a08"),
})  # fmt: skip
FEWEST = 2  # cells of a sentinel: one alone may be a value
FEWEST_OTHERS = 10  # cells with other values, below which nothing is known of their range
APART = 1.0  # widths of the range of all others, between it and the sentinel
SHOWN = 3  # groups of names that are listed
# Blanks, dashes and underscores that words may differ by: not those of -1, of 1-4 and of 0.4-, next to digits alone
BETWEEN = re.compile(
    r"(?<!\d)[\s_-]+(?!\d)|(?<=[^\W\d_])[\s_-]+(?=\d)|(?<=\d)[\s_-]+(?=[^\W\d_])",
)


def sentinel(cells: Parsed, kept: Flags) -> tuple[float, int, float, float] | None:
    """Return the number that seems to stand for a missing value, its cells, and the range of all others; None for none.

    It is a usual one for that, stands in several cells, and is apart from all others by more than their range.

    Args:
        cells: of a column of numbers.
        kept: which rows are in, shape (rows,).
    """
    values = cells.number[kept & ~cells.missing & ~cells.wrong]
    for number in (values.min(), values.max()) if len(values) else ():
        others = values[values != number]
        count = len(values) - len(others)
        if number not in SENTINELS or count < FEWEST or len(np.unique(others)) < FEWEST_OTHERS:
            continue
        low, high = float(others.min()), float(others.max())
        gap = low - number if number < low else number - high
        if gap > APART * (high - low) or (number < -1 and low >= 0 and abs(number) > high):
            return float(number), count, low, high
    return None


def report_sentinels(reading: Reading, names: Iterable[str]) -> None:
    """Name the numbers that seem to stand for a missing value; they are read as numbers all the same.

    Args:
        names: columns of numbers.
    """
    for name in names:
        if found := sentinel(reading.parsed(name), reading.kept):
            number, count, low, high = found
            apart = (
                f"{number:.10g} stands in {count:,} cells of {name!r}, and all others lie within {low:g} to {high:g}"
            )
            say(f"table   {apart}: if it means a missing value, leave these cells empty; it is read as a number")


def alike(words: Sequence[str]) -> list[list[str]]:
    """Return the groups of words that differ by case, blanks, dashes or underscores alone."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(BETWEEN.sub("", word.casefold().strip()), []).append(word)
    return [group for key, group in groups.items() if key and len(group) > 1]


def report_total(name: str, cells: Parsed) -> None:
    """Name a last row that seems to be the sum of the others, as tables of offices have it; it is read as a row.

    Args:
        name: of a column of words.
    """
    last = cells.text[-1] or ""
    if last.casefold() in TOTALS and int((cells.text == last).sum()) == 1:
        what = f"the last row has {last!r} in {name!r}: if it is a sum, take it out of the file"
        say(f"table   {what}; it is read as a row")


def report_alike(found: Mapping[str, Sequence[str]]) -> None:
    """Name classes and categories that may be one, by column.

    Args:
        found: words of each column.
    """
    for name, words in found.items():
        groups = alike(words)
        if groups:
            shown = "; ".join(", ".join(repr(shortened(each)) for each in group) for group in groups[:SHOWN])
            more = f" and {len(groups) - SHOWN} more" if len(groups) > SHOWN else ""
            what = f"in {name!r} these differ by case or blanks alone, and count as different words: {shown}{more}"
            say(f"table   {what}; write one of each")


def words_of(columns: Sequence[Column], target: str, labels: Sequence[str] | None) -> dict[str, Sequence[str]]:
    """Return the words of each column of categories, and those of the target.

    Args:
        columns: the inputs.
        target: name of the target.
        labels: names of the classes; None for a number as target.
    """
    words: dict[str, Sequence[str]] = {target: labels or ()}
    return words | {column.name: column.categories for column in columns if column.kind == "category"}
