"""Rows of a new table as the inputs of a finished model, encoded by its metadata as its own rows were."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.tables.encoding import Column, encode, fault, parse_cells
from trainer.data.tables.reader import Cells, read_cells
from trainer.runtime.errors import TrainerError, suggestion
from trainer.runtime.events import say


def recorded_inputs(made: Mapping[str, Any], path: Path) -> tuple[dict[str, list[Any]], Floats]:
    """Return what names each row of the table at `path`, and its inputs (rows, features).

    A row is named by its line, and by its time where the model's rows had one. Rows that the model's own policies
    refuse have NaN in their inputs; each kind is said with its number.

    Raises:
        TrainerError: RM510, RM511, RM516, RM580 for the table, RM581 for a missing value under the policy `error`,
            RM584 for an unknown category under it.
    """
    cells = read_cells(path)
    inputs: list[Floats] = []
    refused = np.zeros(len(cells.line), np.bool_)
    for column in (Column.from_dict(column_record) for column_record in made["columns"]):
        values, unusable = _column(column, cells, made)
        inputs += values
        refused |= unusable
    matrix = np.column_stack(inputs)
    matrix[refused] = np.nan
    if refused.any():
        say(f"{int(refused.sum()):,} rows have no forecast: a value is missing, and the policy is to drop such rows")
    names: dict[str, list[Any]] = {cells.unit: cells.line.tolist()}
    if made["time"] in cells.types:
        names["date"] = cells.column(made["time"]).cast(pl.String).to_list()
    return names, matrix


def _column(column: Column, cells: Cells, made: Mapping[str, Any]) -> tuple[list[Floats], NDArray[np.bool_]]:
    if column.name not in cells.types:
        hint = suggestion(column.name, cells.types)
        raise TrainerError("RM580", what=f"no column {column.name!r}; {hint}", where=str(cells.path))
    known = {each.lower() for each in column.categories}  # - was a category where the run's rows also had a +
    words = [word for word in made["missing"]["words"] if word not in known]
    parsed = parse_cells(cells.column(column.name), column.decimal, words)
    values, new = encode(column, parsed)
    if column.kind == "number" and parsed.wrong.any():
        row = int(np.flatnonzero(parsed.wrong)[0])
        what = f"{parsed.text[row]!r} in column {column.name!r} {fault(parsed.text[row])}"
        raise TrainerError("RM580", what=what, where=cells.place(row))
    if new.any():
        _report_unknown(column, parsed.text.filter(pl.Series(new)), cells.place(int(np.flatnonzero(new)[0])), made)
    policy = made["missing"]["policy"]
    if parsed.missing.any() and policy == "error":
        row = int(np.flatnonzero(parsed.missing)[0])
        raise TrainerError("RM581", what=f"column {column.name!r} has a missing value", where=cells.place(row))
    return values, parsed.missing if policy == "drop" else np.zeros_like(parsed.missing)


def _report_unknown(column: Column, cells: pl.Series, where: str, made: Mapping[str, Any]) -> None:
    what = f"{cells[0]!r} in column {column.name!r} is a category that training never met"
    if made["unknown"] == "error":
        raise TrainerError("RM584", what=what, where=where)
    say(f"{what}; {len(cells):,} such cells count as no category at all (--unknown zero)")
