"""Requirements on a table and its target, checked before anything is learned from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from trainer.data.bar import Floats
from trainer.data.readers.headers import NUMBER
from trainer.data.tables.reader import NO_HEADER, Cells
from trainer.runtime.errors import TrainerError, suggestion
from trainer.runtime.short_names import shortened

MOST_SHOWN = 5  # classes that are named
PARTS = 3  # training, validation and test


def require_columns(cells: Cells, names: Sequence[str]) -> None:
    """Raise RM580 for a name that is no column, with the nearest that is one."""
    for name in names:
        if name not in cells.types:
            hint = suggestion(name, cells.types)
            what = f"no column {name!r}; {hint}"
            raise TrainerError("RM580", what=what, where=str(cells.path), next=_remedy(name, list(cells.types)))


def require_all(cells: Cells, names: Sequence[str]) -> None:
    """Raise RM580 for the columns of a finished run that a new table lacks, all of them at once.

    Args:
        names: columns that the run learned from.
    """
    absent = [name for name in names if name not in cells.types]
    if len(absent) < 2:
        require_columns(cells, absent)
        return
    shown = ", ".join(repr(name) for name in absent[:MOST_SHOWN])
    more = f" and {len(absent) - MOST_SHOWN} more" if len(absent) > MOST_SHOWN else ""
    what = f"{len(absent)} of {len(names)} columns of the training are missing: {shown}{more}"
    why = f"the file has {', '.join(list(cells.types)[: 2 * MOST_SHOWN])}"
    advice = _remedy(absent[0], list(cells.types)) or "Give a file with the columns of the training, named as there."
    raise TrainerError("RM580", what=what, where=str(cells.path), why=why, next=advice)


def _remedy(name: str, names: Sequence[str]) -> str:
    """Return what may be done about a column that is not there, None for the usual advice.

    Args:
        name: the name that was given.
        names: those of the table's columns.
    """
    if len(names) == 1:
        return "The cells of a line stand between one of , ; tab or |: replace what is between them here."
    if {part.strip() for part in name.split(",")} <= {*names}:
        return "One column is learned at a time: train a model for each."
    if any(NUMBER.fullmatch(each) for each in names):
        return NO_HEADER
    return ""


def require_flat(cells: Cells, target: str) -> None:
    """Raise RM580 for a target of lists, records or bytes, which are neither numbers nor words.

    Args:
        target: name of the column that is learned.
    """
    if is_nested(cells.types[target]):
        what = f"neither numbers nor words are in the target {target!r} ({cells.types[target]})"
        advice = "Choose another column with --target. Or write its parts as columns."
        raise TrainerError("RM580", what=what, where=str(cells.path), next=advice)


def is_nested(kind: pl.DataType) -> bool:
    """Return whether cells of this type are lists, records or bytes."""
    return kind.is_nested() or kind in (pl.Binary, pl.Object)


def require_single(cells: Cells, names: Sequence[str]) -> None:
    """Raise RM580 where one of `names` stands in the header again, so that its values could be those of either column.

    Args:
        names: target of a training, or columns that a finished run learned from.
    """
    again = {name.rpartition(" (")[0] for name in cells.read.get("numbered_names", []) if name not in names}
    if found := [name for name in names if name in again]:
        advice = "Give each of them a name of its own in the header, or take out all but one."
        what = f"several columns are called {', '.join(map(repr, found[:MOST_SHOWN]))}"
        raise TrainerError("RM580", what=what, where=str(cells.path), next=advice)


def require_rows(classes: Floats, labels: Sequence[str], target: str) -> None:
    """Raise RM583 for classes of fewer rows than there are parts; the smallest are named.

    Args:
        classes: class of each row that is used, as its place in `labels`, shape (rows,).
        labels: names of the classes, in their order.
        target: name of the column.
    """
    counts = np.bincount(classes.astype(np.int64), minlength=len(labels))
    rare = [
        f"{shortened(labels[place])!r} {counts[place]}"
        for place in np.argsort(counts, kind="stable")
        if counts[place] < PARTS
    ]
    if rare:
        more = f" and {len(rare) - MOST_SHOWN} more" if len(rare) > MOST_SHOWN else ""
        shown = ", ".join(rare[:MOST_SHOWN]) + more
        what = f"{len(rare)} of {len(labels)} classes of {target!r} have too few rows: {shown}"
        advice = "Give more rows of these classes, leave them out of the file, or write one name for several."
        if all(NUMBER.fullmatch(label) for label in labels):
            advice = f"If the target is a number, give --task regression. {advice}"
        raise TrainerError("RM583", what=what, why=f"each of the {PARTS} parts needs one of each class", next=advice)
