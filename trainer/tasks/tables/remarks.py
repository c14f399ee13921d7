"""What a person should know of a table's columns before the training: what is of no use, or may be meant otherwise."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from trainer.config.name_list import as_word
from trainer.data.dataset import Dataset
from trainer.data.split import Scaler
from trainer.data.tables.encoding import MISSING, MOSTLY, NAMED, Column, Flags, Parsed, are_dated, are_times
from trainer.data.tables.number_marks import FEW_WORDS, units
from trainer.data.tables.split import Parts
from trainer.runtime.events import say
from trainer.tasks.assumptions import unmoved

SHOWN = 8  # columns of a list that are named
CROWDED = 1e-3  # standard deviations in which 90 of 100 values are one number to a network
LEAST_SEEN, MOST_SEEN = 200, 1_000_000  # rows, and numbers of all columns, by which that is judged
SOME = 0.1  # of the cells that are numbers, from which words next to them may be marks such as <5 or n.d.
CODED = r"^0\d+$"


def report_columns(made: dict[str, Any], columns: Sequence[Column], parts: Parts) -> None:
    """Report what was found and chosen: kinds of columns, missing values, dropped rows, the split.

    Args:
        made: choices by name.
        columns: the inputs.
    """
    kinds: dict[Literal["number", "category"], int] = {"number": 0, "category": 0}
    for column in columns:
        kinds[column.kind] += 1
    timed = parts.how["by"] == "time"
    by = f"the time in {made['time']!r}" if timed else f"seed {parts.how['seed']}"
    numbers = counted(kinds["number"], "column")
    words = [f"table   {numbers} of numbers, {kinds['category']} of categories; split by {by}"]
    cells = made["missing"]["cells"]
    if cells:
        policy = made["missing"]["policy"]
        words.append(f"{counted(sum(cells.values()), 'missing value')} in {', '.join(cells)}: --missing {policy}")
    words += [f"{counted(count, 'row')} dropped: {why}" for why, count in made["dropped_rows"].items()]
    say("; ".join(words))
    for column in columns:
        report_units(column)
        report_dates(column, timed=timed)


def report_units(column: Column) -> None:
    """Report a column that is read as words although its cells are numbers with a unit, as 72 kg is."""
    unit = units(pl.Series(column.categories, dtype=pl.String))
    if unit and len(column.categories) > FEW_WORDS and column.why != NAMED:
        what = f"column {column.name!r} is read as words, though numbers with {' or '.join(map(repr, unit))} behind"
        advice = f"write the numbers alone; --categories {as_word([column.name])} states that words are meant"
        say(f"table   {what} are in it: {advice}")


def report_dates(column: Column, *, timed: bool) -> None:
    """Report that rows are split without regard to a column of times, or that its dates are words of several forms.

    Args:
        column: an input.
        timed: whether rows are split by the time of another column.
    """
    words = pl.Series(column.categories, dtype=pl.String)
    if column.kind != "category" or column.why == NAMED:
        return
    if are_times(words):
        if not timed:
            what = f"column {column.name!r} reads as times, and rows are split without regard to it"
            say(f"table   {what}; --time-column {shlex.quote(column.name)} does")
    elif are_dated(words):
        what = f"column {column.name!r} looks like dates of several forms"
        say(f"table   {what}, such as {words[0]!r}, and is read as words: write all as 2014-01-31")


def report_unused(train: Dataset, names: Sequence[str]) -> None:
    """Name the inputs that never change in the training part.

    Args:
        names: of the inputs, in their order.
    """
    constant, _ = unmoved(train.features)
    if constant:
        say(f"table   constant in the training part, so without use: {listed([names[place] for place in constant])}")


def report_crowded(train: Dataset, scaler: Scaler, names: Sequence[str]) -> None:
    """Name the inputs of which nearly all values become one once they are scaled, as a few are far too large.

    Args:
        scaler: of the inputs.
        names: of the inputs, in their order.
    """
    rows = max(LEAST_SEEN, MOST_SEEN // len(names))
    seen = train.features[:: max(1, math.ceil(len(train.features) / rows))]
    low, high = np.quantile(seen, [0.05, 0.95], axis=0)
    for place in np.flatnonzero((high > low) & (high - low < CROWDED * scaler.std)).tolist():
        values = train.features[:, place]
        far = float(values[np.abs(values - low[place]).argmax()])
        what = f"nearly all values of {names[place]!r} are within {low[place]:g} to {high[place]:g}, and some such as"
        say(f"table   {what} {far:g} are so far away that those become one number: correct them, or leave them empty")


def mixed(cells: Parsed, kept: Flags) -> tuple[float, str] | None:
    """Return the share of numbers in a column that is read as words, and a word of it; None where there are few.

    Args:
        kept: which rows are in, shape (rows,).
    """
    there = ~cells.missing & kept
    words = cells.wrong & there
    share = 1 - words.sum() / max(1, there.sum())
    if not SOME <= share < MOSTLY:
        return None
    return float(share), str(cells.text[int(words.argmax())])


def report_mixed(found: Mapping[str, tuple[float, str]]) -> None:
    """Name the columns that are read as words although a good part of their cells are numbers."""
    for name, (share, word) in found.items():
        what = f"column {name!r} is read as words, though {share:.0%} of its cells are numbers, for such as {word!r}"
        advice = f"write numbers or leave them empty; --categories {as_word([name])} states that words are meant"
        say(f"table   {what}: {advice}")


def is_coded(cells: pl.Series) -> bool:
    """Return whether cells are codes of digits, all of one length, some with zeros in front: 01234, 10001."""
    if cells.dtype != pl.String:
        return False
    text = cells.str.strip_chars()
    text = text.filter(~text.str.to_lowercase().is_in(MISSING))
    if not len(text) or not text.str.contains(CODED).any() or not text.str.contains(r"^\d+$").all():
        return False
    return text.str.len_chars().n_unique() == 1


def report_coded(names: Sequence[str]) -> None:
    """Name the columns of codes that are read as numbers."""
    if names:
        say(f"table   read as numbers, without the zeros in front: {listed(names)} (--categories keeps codes)")


def listed(names: Sequence[str]) -> str:
    """Return names between commas, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as in `1 column` and `2 columns`.

    Args:
        noun: for one.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
