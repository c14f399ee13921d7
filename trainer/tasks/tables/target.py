"""The target of a table: a number or classes, and its value in each row."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from trainer.config.sections.table import TableConfig
from trainer.data.bar import Floats
from trainer.data.tables.encoding import Parsed, as_words, is_marked, kind_of, parse_cells
from trainer.runtime.errors import TrainerError
from trainer.runtime.short_names import shortened
from trainer.tasks.tables.requirements import MOST_SHOWN, PARTS
from trainer.tasks.tables.row_policy import Reading, settle_missing, settle_wrong

MOST_CLASSES = 20  # different whole numbers up to which `auto` takes a target for classes
ROWS_A_CLASS = 10
MOST_LEFT_OUT = 0.05  # of the rows, in classes of fewer rows than parts; more of them are a mistake in the target
MOST_RARE = 10  # different whole numbers up to which they stay classes although one of them has fewer rows than parts


def classes_of(reading: Reading, config: TableConfig) -> tuple[tuple[str, ...] | None, str]:
    """Return the classes of the target in their order, None for a number, and why it was taken for that.

    Raises:
        TrainerError: RM580 for words among numbers or where numbers are asked, RM581 where a target is missing
            under `error`, RM582 where nearly every row has a class of its own.
    """
    settle_numbers(reading, config)
    cells = reading.parsed(config.target)
    if (cells.missing & reading.kept).any() and config.missing == "error":
        settle_missing(reading, config.target, config)
    reading.drop(cells.missing, f"{config.target}, the target, is missing")
    numbers = cells.number[reading.kept & ~cells.missing & ~cells.wrong]
    different, counts = np.unique(numbers, return_counts=True)
    whole = bool((different == np.floor(different)).all())
    few = whole and len(different) <= min(MOST_CLASSES, reading.kept.sum() // ROWS_A_CLASS)
    few = few and (len(different) <= MOST_RARE or bool(counts.min() >= PARTS))  # else counts, such as of rings or goals
    words = cells.wrong & reading.kept
    classes = config.task == "classification" or (config.task == "auto" and (bool(words.any()) or few))
    if not classes and words.any():
        row = int(np.flatnonzero(words)[0])
        raise TrainerError("RM580", what=f"the target {cells.text[row]!r} is no number", where=reading.cells.place(row))
    why = f"--task {config.task}"
    if config.task == "auto":
        shown = f"{len(different)} different {'whole numbers' if whole else 'numbers'}"
        why = "the target holds words" if words.any() else f"the target holds {shown}"
    if not classes:
        return None, why
    labels = class_words(cells).filter(pl.Series(reading.kept)).unique().to_list()
    if len(labels) > max(MOST_CLASSES, reading.kept.sum() // 2):
        count = f"{len(labels):,} different words in {reading.kept.sum():,} rows"
        what = f"column {config.target!r}, the target, holds {count}"
        advice = "Choose a column of numbers or of few classes with --target."
        raise TrainerError("RM582", what=what, where=str(reading.cells.path), next=advice)
    return tuple(sorted(labels, key=_numbers_first)), why


def common_classes(reading: Reading, labels: Sequence[str], config: TableConfig) -> tuple[str, ...]:
    """Return the classes with a row for each part; those of fewer are left out with their rows, where these are few.

    Args:
        labels: names of all classes, in their order.
    """
    words = class_words(reading.parsed(config.target))
    counts = dict(words.filter(pl.Series(reading.kept)).value_counts().iter_rows())
    rare = [label for label in labels if counts[label] < PARTS]
    rows = sum(counts[label] for label in rare)
    if not rare or len(labels) - len(rare) < 2 or rows > MOST_LEFT_OUT * reading.kept.sum():
        return tuple(labels)
    more = f" and {len(rare) - MOST_SHOWN} more" if len(rare) > MOST_SHOWN else ""
    shown = ", ".join(repr(shortened(label)) for label in rare[:MOST_SHOWN]) + more
    why = f"{config.target} is of a class with less than {PARTS} rows, {shown}"
    reading.drop(words.is_in(rare).fill_null(False).to_numpy(), why)
    return tuple(label for label in labels if label not in rare)


def class_words(cells: Parsed) -> pl.Series:
    """Return the words for the classes of all rows, (rows,): 1 and 1.0 in one file of numbers are one class."""
    there = pl.Series(~cells.missing)
    if cells.wrong.any() or cells.text.filter(there).n_unique() == len(np.unique(cells.number[~cells.missing])):
        return cells.text
    return as_words(pl.Series(cells.number, dtype=pl.Float64))


def settle_numbers(reading: Reading, config: TableConfig) -> None:
    """Treat words in a target that is otherwise of numbers as those in an input, by --on-bad-row.

    Classes may be called by whole numbers and a word or two: a target of few different cells is left as it is.

    Raises:
        TrainerError: RM580 for such a word under `error`, and for numbers with a comma for a point.
    """
    cells = reading.parsed(config.target)
    numbers = cells.number[reading.kept & np.isfinite(cells.number)]
    few = cells.text.filter(pl.Series(reading.kept)).n_unique() <= MOST_CLASSES
    if config.task == "classification" or (few and (numbers == np.floor(numbers)).all()):
        return
    kind, _ = kind_of(config.target, cells, ())
    if kind == "number":
        settle_wrong(reading, config.target, kind, config)
        return
    pointed = parse_cells(cells.text.str.replace(",", ".", literal=True))
    comma = cells.wrong & ~pointed.wrong & reading.kept
    if is_marked(cells) and not comma.any():
        row = int(np.flatnonzero(cells.wrong & reading.kept)[0])
        what = f"{cells.text[row]!r} in column {config.target!r}, the target, is a number with a sign or with groups"
        advice = "Write the numbers alone, with a point; if they are names of classes, give --task classification."
        raise TrainerError("RM580", what=what, where=reading.cells.place(row), next=advice)
    if kind_of(config.target, pointed, ())[0] == "number" and comma.any():
        row = int(np.flatnonzero(comma)[0])
        raise TrainerError(
            "RM580",
            what=f"{cells.text[row]!r} in column {config.target!r}, the target, has a comma where a number has a point",
            where=reading.cells.place(row),
            next="Write the numbers with a point; if they are names of classes, give --task classification.",
        )


def require_apart(config: TableConfig) -> None:
    """Raise RM500 where the target is also named as a column to leave out or as an input of words."""
    for flag, names in (("--ignore", config.columns.ignore), ("--categories", config.columns.categories)):
        if config.target in names:
            what = f"{flag} names {config.target!r}, which is the --target"
            hint = "; for classes give --task classification" if flag == "--categories" else ""
            raise TrainerError("RM500", what=what, next=f"Take it out of one of the two{hint}.")


def _numbers_first(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label


def target_values(reading: Reading, config: TableConfig, labels: Sequence[str] | None) -> Floats:
    """Return the target of every row of the file as a number or as the place of its class.

    Args:
        labels: names of the classes; None for a number as target.
    """
    cells = reading.parsed(config.target)
    if labels is None:
        return cells.number
    places = pl.Series(range(len(labels)), dtype=pl.Float64)
    return class_words(cells).replace_strict(pl.Series(labels), places, default=math.nan).to_numpy().copy()
