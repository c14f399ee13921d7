"""Columns that are left out by themselves and reported: identifiers, names, lists, and those without a known value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import polars as pl

from trainer.config.sections.table import TableConfig
from trainer.data.tables.encoding import MOST_CATEGORIES, are_times
from trainer.data.tables.identifiers import called_identifier, is_identifier
from trainer.data.tables.number_marks import units
from trainer.data.tables.reader import Cells
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.tasks.tables.remarks import listed
from trainer.tasks.tables.requirements import is_nested
from trainer.tasks.tables.row_policy import Reading


def flat_of(cells: Cells, names: Sequence[str]) -> list[str]:
    """Return the columns whose cells are numbers or words; those of lists, records and bytes are reported.

    Args:
        names: columns that may be inputs, by their names in the header.
    """
    nested = [name for name in names if is_nested(cells.types[name])]
    if nested:
        shown = listed([f"{name} ({cells.types[name]})" for name in nested])
        say(f"table   left out, neither numbers nor words: {shown}; write their parts as columns to use them")
    return [name for name in names if name not in nested]


def identifiers_of(reading: Reading, names: Sequence[str], config: TableConfig) -> tuple[str, ...]:
    """Return the columns that are left out as identifiers, and report them.

    Args:
        names: columns that may be inputs, by their names in the header.

    Raises:
        TrainerError: RM580 where no other column is left.
    """
    if config.columns.identifiers == "keep":
        return ()
    candidates = [name for name in names if called_identifier(name) and name not in config.columns.categories]
    found = tuple(name for name in candidates if is_identifier(name, reading.parsed(name), reading.kept))
    if found and len(found) == len(names):
        what = f"no column but identifiers is left as an input: {', '.join(found)}"
        raise TrainerError("RM580", what=what, where=str(reading.cells.path), next="With --identifiers keep they stay.")
    if found:
        say(f"table   left out as identifiers, another value in every row: {', '.join(found)} (--identifiers keep)")
    return found


def report_unique(found: Mapping[str, pl.Series]) -> None:
    """Report the columns of names or free text, and those among them that seem to be times or numbers with a unit.

    Args:
        found: different words of each column.
    """
    if not found:
        return
    shown = listed([f"{name} ({len(words):,} words)" for name, words in found.items()])
    keeps = " (--categories keeps them)" if all(len(words) <= MOST_CATEGORIES for words in found.values()) else ""
    say(f"table   left out, too many different words for the rows: {shown}{keeps}")
    for name, words in found.items():
        if are_times(words):
            what = f"column {name!r} reads as times; --time-column {shlex.quote(name)} splits the rows by it"
            say(f"table   {what}")
        elif unit := units(words):
            what = f"column {name!r} has numbers with {' or '.join(map(repr, unit))} behind"
            say(f"table   {what}: write the numbers alone to use them")


def report_late(names: Sequence[str]) -> None:
    """Report the columns that have no value in the training part.

    Args:
        names: of these columns.
    """
    if names:
        say(f"table   left out, without any value in the training part: {listed(names)}")
