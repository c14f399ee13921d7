"""Rows of a new table as the inputs of a finished model, encoded by its metadata as its own rows were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.tables.encoding import Column, encode, fault, parse_cells
from trainer.data.tables.number_marks import Decimal, decimal_mark
from trainer.data.tables.reader import Cells, read_cells
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.tasks.tables.marked_numbers import marks_of
from trainer.tasks.tables.requirements import require_all, require_single
from trainer.tasks.tables.row_policy import Reading

MOSTLY_NEW = 0.5  # of the cells of a column of words
OFTEN = 0.2  # of the cells of a column that missed none in training, from which its inputs are mostly invented


def recorded_inputs(made: Mapping[str, Any], path: Path) -> tuple[dict[str, list[Any]], Floats]:
    """Return what names each row of the table at `path`, and its inputs (rows, features).

    A row is named by its line, and by its time where the model's rows had one. Rows that the model's own policies
    refuse have NaN in their inputs; each kind is reported with its count.

    Raises:
        TrainerError: RM510, RM511, RM516, RM580 for the table, RM581 for a missing value under the policy `error`,
            RM584 for an unknown category under it.
    """
    cells = read_cells(path)
    columns = [Column.from_dict(column_record) for column_record in made["columns"]]
    require_all(cells, [column.name for column in columns])
    require_single(cells, [column.name for column in columns])
    inputs: list[Floats] = []
    refused, empty = np.zeros(len(cells.line), np.bool_), np.ones(len(cells.line), np.bool_)
    unknown: dict[str, NDArray[np.bool_]] = {}
    for column in rewritten(columns, cells):
        values, missing = _column(column, cells, made)
        inputs += values
        empty &= missing
        refused |= missing & (made["missing"]["policy"] == "drop")
        unknown[column.name] = missing
    matrix = np.column_stack(inputs)
    matrix[refused | empty] = np.nan
    shares = {name: float(missing[~empty].mean()) for name, missing in unknown.items() if not empty.all()}
    _report_missing(refused, empty, shares, made)
    names: dict[str, list[Any]] = {cells.unit: cells.line.tolist()}
    if made["time"] in cells.types:
        names["date"] = cells.column(made["time"]).cast(pl.String).to_list()
    return names, matrix


def _column(column: Column, cells: Cells, made: Mapping[str, Any]) -> tuple[list[Floats], NDArray[np.bool_]]:
    known = {each.lower() for each in column.categories}  # - was a category where the run's rows also had a +
    words = [word for word in made["missing"]["words"] if word not in known]
    parsed = parse_cells(cells.column(column.name), column.decimal, words, column.unit)
    values, new = encode(column, parsed)
    if column.kind == "number" and parsed.wrong.any():
        row = int(np.flatnonzero(parsed.wrong)[0])
        what = f"{parsed.text[row]!r} in column {column.name!r} {fault(parsed.text[row])}"
        raise TrainerError("RM580", what=what, where=cells.place(row))
    if new.any():
        _report_unknown(column, parsed.text.filter(pl.Series(new)), cells.place(int(np.flatnonzero(new)[0])), made)
        _report_new(column, new)
    if parsed.missing.any() and made["missing"]["policy"] == "error":
        row = int(np.flatnonzero(parsed.missing)[0])
        raise TrainerError("RM581", what=f"column {column.name!r} has a missing value", where=cells.place(row))
    return values, parsed.missing


def rewritten(columns: Sequence[Column], cells: Cells) -> list[Column]:
    """Return the columns with the decimal mark that the new file shows; the run's own where it shows none.

    2615.86 in the table of the training and 2615,86 in a new one are one number; 2.615 alone may be either, and is
    read as in the training.

    Args:
        columns: columns of the run, in their order.
        cells: cells of the new table.
    """
    words = [each.name for each in columns if each.kind == "number" and cells.types.get(each.name) == pl.String]
    units = {each.name: each.unit for each in columns if each.unit and each.name in words}
    found = marks_of(Reading(cells=cells, held=(), kept=np.ones(len(cells.line), np.bool_), units=units), words)
    pointed = [each.name for each in columns if each.name in words and each.decimal == "," and _is_pointed(each, cells)]
    plain: dict[str, Decimal] = dict.fromkeys(pointed, "")
    marks = plain | found
    other = [each.name for each in columns if marks.get(each.name, each.decimal) != each.decimal]
    if other:
        say(f"numbers are written otherwise than in the training, and are read by their own marks: {', '.join(other)}")
    return [replace(each, decimal=marks.get(each.name, each.decimal)) for each in columns]


def _is_pointed(column: Column, cells: Cells) -> bool:
    """Return whether a column's cells show a decimal point; groups of three digits alone do not."""
    text = cells.column(column.name).str.strip_chars()
    known = text.filter(text.cast(pl.Float64, strict=False).is_not_null())
    return len(known) > 0 and decimal_mark(known) == "." and bool(known.str.contains(".", literal=True).any())


def _report_missing(
    refused: NDArray[np.bool_], empty: NDArray[np.bool_], shares: Mapping[str, float], made: Mapping[str, Any]
) -> None:
    """Report rows without a forecast, and columns that miss far more values than those of the training did.

    Args:
        refused: rows that the policy drops, shape (rows,).
        empty: rows without any value, shape (rows,).
        shares: share of missing cells by column, in rows that have any value.
    """
    if refused.any():
        say(f"{int(refused.sum()):,} rows have no forecast: a value is missing, and the policy is to drop such rows")
    elif empty.any():
        say(f"{int(empty.sum()):,} rows have no forecast: none of the model's columns has a value there")
    before = made["missing"]["cells"]
    often = [f"{name} ({share:.0%})" for name, share in shares.items() if share > OFTEN and name not in before]
    if often:
        say(f"RM519 values are missing where the training had all, and are filled in: {', '.join(often)}")


def _report_unknown(column: Column, cells: pl.Series, where: str, made: Mapping[str, Any]) -> None:
    what = f"{cells[0]!r} in column {column.name!r} is a category that training never met"
    if made["unknown"] == "error":
        raise TrainerError("RM584", what=what, where=where)
    say(f"{what}; {len(cells):,} such cells count as no category at all (--unknown zero)")


def _report_new(column: Column, new: NDArray[np.bool_]) -> None:
    """Report a column whose words are mostly none of the training's: the model learned nothing of it.

    Args:
        new: which rows have such a word, shape (rows,).
    """
    if new.mean() > MOSTLY_NEW:
        say(
            f"RM519 {new.mean():.0%} of the cells of {column.name!r} are words that training never met: another column?"
        )
