"""The inputs of a table's rows as a matrix, a column at a time, its rows in the order of the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import chunks, mapped
from trainer.data.split import FURTHEST, Scaler
from trainer.data.tables.encoding import Column, Kind, encode, fit_column
from trainer.data.tables.reader import Cells
from trainer.data.tables.split import Parts
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables.left_out import report_late
from trainer.tasks.tables.remarks import listed
from trainer.tasks.tables.row_policy import Reading

Kinds = Mapping[str, tuple[Kind, str]]  # of each column, with the reason


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Encoded columns: `values` (rows, features), rows in the order of `order`, which are rows of the file.

    missing: how many missing values each column has in rows that are still in, whether they are used or not.
    """

    columns: Sequence[Column]
    missing: Mapping[str, int]
    order: NDArray[np.int64]
    values: Floats


def matrix_of(reading: Reading, kinds: Kinds, parts: Parts, folder: Path | None) -> Matrix:
    """Return the inputs of the rows of all parts, training first; with a `folder` they are mapped from files there.

    Args:
        folder: folder for mapped files; None keeps the inputs in memory.

    Columns without a value in the training part are left out, and reported.

    Raises:
        TrainerError: RM582 for a column of too many words, RM583 where no column has a value in the training part.
        OSError: where `folder` has no room.
    """
    order = np.concatenate([parts.train, parts.validation, parts.test])
    columns, missing, inputs, late = [], {}, [], []
    for name, kind in kinds.items():
        cells = reading.parsed(name)
        if cells.missing[parts.train].all():
            late.append(name)
        else:
            columns.append(fit_column(name, *kind, cells, parts.train))
            missing[name] = int(cells.missing[reading.kept].sum())
            ordered = (values[order] for values in encode(columns[-1], cells)[0])
            inputs += [values if folder is None else mapped([values], folder) for values in ordered]
        reading.forget(name)
    if not columns:
        raise TrainerError("RM583", what=f"no column has a value in the training part: {listed(late)}")
    report_late(late)
    return Matrix(columns=columns, missing=missing, order=order, values=side_by_side(inputs, folder))


def side_by_side(inputs: Sequence[Floats], folder: Path | None) -> Floats:
    """Return columns (rows,) as (rows, columns), in memory or mapped from a file without a name in `folder`."""
    if folder is None:
        return np.column_stack(inputs)
    return mapped((np.column_stack([values[piece] for values in inputs]) for piece in chunks(len(inputs[0]))), folder)


def datasets(matrix: Matrix, parts: Parts, when: NDArray[Any], values: Floats) -> dict[str, Dataset]:
    """Return the rows of each part; nothing is known of an earlier target, so there is no persistence.

    Args:
        when: time or number of each row, shape (rows,).
        values: targets, shape (rows,).
    """
    found, first = {}, 0
    for name in ("train", "validation", "test"):
        rows = getattr(parts, name)
        features = matrix.values[first : first + len(rows)]
        unknown = np.broadcast_to(np.nan, len(rows))
        found[name] = Dataset(date=when[rows], features=features, target=values[rows], persistence=unknown)
        first += len(rows)
    return found


def require_near(matrix: Matrix, scaler: Scaler, names: Sequence[str], cells: Cells) -> None:
    """Raise RM580 for a value too far from training's to be computed with in 32 bits: of the first column that has one.

    `scaler` and `names` are by column of the matrix.

    Args:
        names: name of each column of the matrix.
    """
    mean, std = np.atleast_1d(scaler.mean), np.atleast_1d(scaler.std)
    first: dict[int, tuple[int, float]] = {}  # by column, the row of the file and the value there
    for piece in chunks(len(matrix.order)):
        rows, values = matrix.order[piece], matrix.values[piece]
        far = np.abs(values - mean) / std > FURTHEST
        for column in np.flatnonzero(far.any(axis=0)).tolist():
            at = np.flatnonzero(far[:, column])
            met = at[np.argmin(rows[at])]
            here = (int(rows[met]), float(values[met, column]))
            first[column] = min(here, first.get(column, here))
    if first:
        column = min(first)
        row, value = first[column]
        away = f"{abs(value - mean[column]) / std[column]:.0e} standard deviations from the training rows' mean"
        what = f"{value:g} in column {names[column]!r} is {away}, too far for 32 bits"
        raise TrainerError("RM580", what=what, where=cells.place(row))
