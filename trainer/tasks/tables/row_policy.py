"""A table on its way to a task: which cells and rows stay in, by the policies for wrong and missing values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.config.choices import REFUSING
from trainer.config.name_list import as_word
from trainer.config.sections.table import TableConfig
from trainer.data.tables.encoding import MISSING, Parsed, fault, is_marked, parse_cells
from trainer.data.tables.number_marks import Decimal
from trainer.data.tables.reader import Cells
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.runtime.short_names import shortened

MOST_MARKS = 10  # different words of a column of numbers; more are no marks
SHOWN = 4  # of them that are listed


@dataclass(kw_only=True)
class Reading:
    """A table on its way to a task: its cells by column, and the rows that are still in.

    Columns of `held` stay in memory once they are parsed; of the others only the last one does. decimals: the decimal
    mark of columns whose numbers are not written plainly. units: what stands behind the numbers of a column. marks:
    words among numbers that count as missing values, in small letters.
    """

    cells: Cells
    held: Collection[str]
    kept: NDArray[np.bool_]
    dropped: dict[str, int] = field(default_factory=dict)
    decimals: dict[str, Decimal] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)
    _parsed: dict[str, Parsed] = field(default_factory=dict)
    _repaired: set[str] = field(default_factory=set)
    _passing: str | None = None

    def parsed(self, name: str) -> Parsed:
        """Return the cells of a column; what is wrong in a repaired one is missing."""
        if name in self._parsed:
            return self._parsed[name]
        column, decimal = self.cells.column(name), self.decimals.get(name, "")
        found = parse_cells(column, decimal, unit=self.units.get(name, ""))
        if name in self._repaired:
            found = found.repaired()
        if self._passing is not None:
            self.forget(self._passing)
        self._passing = None if name in self.held else name
        self._parsed[name] = found
        return found

    def repair(self, name: str) -> None:
        """Take what is wrong in a column for missing from now on."""
        self._repaired.add(name)
        if name in self._parsed:
            self._parsed[name] = self._parsed[name].repaired()

    def forget(self, name: str) -> None:
        """Release the memory of a column that is no longer needed."""
        self._parsed.pop(name, None)

    def drop(self, rows: NDArray[np.bool_], why: str) -> None:
        """Leave rows out, and count them."""
        count = int((rows & self.kept).sum())
        if count:
            self.dropped[why] = self.dropped.get(why, 0) + count
        self.kept &= ~rows


def first_marked(reading: Reading, name: str) -> str | None:
    """Return the first cell of a column of words that are numbers with commas or signs, None for another column."""
    cells = reading.parsed(name)
    return str(cells.text[int(np.flatnonzero(cells.wrong)[0])]) if is_marked(cells) else None


def refuse_marked(found: Mapping[str, str], path: Path) -> TrainerError:
    """Return the error for columns whose numbers would become categories.

    Args:
        found: a cell of each column.
        path: file of the table.
    """
    shown = ", ".join(f"{name!r} ({cell!r})" for name, cell in found.items())
    what = f"numbers would be taken for words, for their commas or signs, in {shown}"
    advice = f"Write them with a point and no sign, or keep them as words: --categories {as_word(found)}."
    return TrainerError("RM580", what=what, where=str(path), next=advice)


def refuse_time(reading: Reading, name: str, text: pl.Series, unreadable: NDArray[np.bool_], zone: str) -> TrainerError:
    """Return the error for a time that is missing, or is written otherwise than the others.

    Args:
        name: the column that orders the rows.
        text: its cells, (rows,).
        unreadable: which of them are no times, (rows,).
        zone: name of the zone of times without one.
    """
    row, other = (int(np.flatnonzero(flags)[0]) if flags.any() else 0 for flags in (unreadable, ~unreadable))
    if not text[row] or text[row].strip().lower() in MISSING:
        missing = text.is_null() | text.str.strip_chars().str.to_lowercase().is_in(MISSING)
        what = f"{int(missing.sum()):,} times are missing in column {name!r}, which orders the rows"
        advice = "Fill them in, choose --on-bad-row drop, or --time-column none, which draws the parts at random."
    else:
        what = f"{text[row]!r} in column {name!r} is no time written as {text[other]!r}, or none that clocks in {zone}"
        what += " ever showed"
        advice = "Write all in one form, choose --on-bad-row drop, or name the zone: "
        advice += "with --time-zone UTC no hour is left out."
    return TrainerError("RM580", what=what, where=reading.cells.place(row), next=advice)


def settle_wrong(reading: Reading, name: str, kind: str, config: TableConfig) -> None:
    """Treat words and infinities among numbers by --on-bad-row: repair makes them missing values.

    So does `few` with an input's few different words, which are named: in public tables they are marks of what is not
    known. Not with a target's, and not with an infinity.

    Args:
        name: the column\'s name in the header; in messages and metadata.json.
        kind: kind of the column: number, category or time.
    """
    cells = reading.parsed(name)
    wrong = cells.wrong & reading.kept
    if kind == "category" or not wrong.any():
        return
    if config.reading.on_bad_row == "few" and name != config.target and _marks_alone(reading, name, wrong):
        return
    otherwise = f"name the column in --categories {as_word([name])}"
    if name == config.target:
        otherwise = "give --task classification"
    if config.reading.on_bad_row in REFUSING:
        row = int(np.flatnonzero(wrong)[0])
        raise TrainerError(
            "RM580",
            what=f"{cells.text[row]!r} in column {name!r} {fault(cells.text[row])}; nearly all others are numbers",
            where=reading.cells.place(row),
            next=f"Correct it, choose --on-bad-row drop or repair, or {otherwise}.",
        )
    if config.reading.on_bad_row == "drop":
        reading.drop(wrong, f"{name} is no number")
    reading.repair(name)


def _marks_alone(reading: Reading, name: str, wrong: NDArray[np.bool_]) -> bool:
    """Take words among numbers for missing values where they are few different ones; return whether they are.

    Args:
        name: the column's name in the header.
        wrong: which of the rows that are in hold no number, (rows,).
    """
    cells = reading.parsed(name)
    words = cells.text.filter(wrong)
    if (cells.beyond & wrong).any() or words.n_unique() > MOST_MARKS:
        return False
    counts = words.value_counts(sort=True).rows()[:SHOWN]
    shown = ", ".join(f"{shortened(word)!r} ({count:,})" for word, count in counts)
    more = "" if words.n_unique() <= SHOWN else ", \u2026"
    say(f"table   words among the numbers of {name!r} count as missing: {shown}{more} (--on-bad-row error refuses)")
    reading.marks |= set(words.str.to_lowercase())
    reading.repair(name)
    return True


def settle_missing(reading: Reading, name: str, config: TableConfig) -> None:
    """Treat missing values by --missing; raises RM581 under `error`.

    Args:
        name: the column\'s name in the header; in messages and metadata.json.
    """
    missing = reading.parsed(name).missing & reading.kept
    if not missing.any() or config.missing == "fill":
        return
    if config.missing == "error":
        row, count = int(np.flatnonzero(missing)[0]), int(missing.sum())
        what = f"column {name!r} has {count:,} missing values"
        raise TrainerError("RM581", what=what, where=reading.cells.place(row))
    reading.drop(missing, f"{name} is missing")
