"""The learning task of a table: one column predicted from the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.config.choices import REFUSING
from trainer.config.sections.table import TableConfig
from trainer.data.bar import Floats
from trainer.data.dataset import Dataset, Target, class_weights
from trainer.data.readers.data_file import DataFile, digest_of, recorded_source
from trainer.data.readers.forms.naming import plain
from trainer.data.readers.forms.spellings import SPELLINGS
from trainer.data.readers.timestamps import find_format, parse
from trainer.data.split import Scaler, Split
from trainer.data.tables.encoding import MISSING, Column, are_times, features_of, kind_of
from trainer.data.tables.identifiers import unique_words
from trainer.data.tables.reader import Cells, read_cells
from trainer.data.tables.split import Parts, at_random, by_time
from trainer.models.embedded import embedding_width
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.runtime.short_names import shortened
from trainer.tasks.prepared import Task, folder_for
from trainer.tasks.tables.inputs import Kinds, Matrix, datasets, matrix_of, require_near
from trainer.tasks.tables.left_out import flat_of, identifiers_of, report_unique
from trainer.tasks.tables.marked_numbers import settle_marks
from trainer.tasks.tables.remarks import (
    counted,
    is_coded,
    listed,
    mixed,
    report_coded,
    report_columns,
    report_crowded,
    report_mixed,
    report_unused,
)
from trainer.tasks.tables.requirements import require_columns, require_flat, require_rows, require_single
from trainer.tasks.tables.row_policy import (
    Reading,
    first_marked,
    refuse_marked,
    refuse_time,
    settle_missing,
    settle_wrong,
)
from trainer.tasks.tables.suspicions import report_alike, report_sentinels, report_total, words_of
from trainer.tasks.tables.target import classes_of, common_classes, require_apart, target_values

MOST_SHOWN = 5  # classes that are named
RAGGED = "another number of cells than the header has"


def prepare_table(config: TableConfig, *, disk: Path | None = None) -> Task:
    """Read, clean, split, encode and scale a table; with --feed mapped a column at a time is in memory.

    Raises:
        TrainerError: RM510, RM511, RM516 to RM518 and RM580 to RM583, where the table is wrong or holds too little,
            RM500 for a target that is to be left out, too.
        OSError: where the output folder has no room for rows that are mapped.
    """
    require_apart(config)
    reading, names, time = opened(config, disk)
    identifiers = identifiers_of(reading, names, config)
    kinds = settled(reading, [name for name in names if name not in identifiers], config)
    labels, why = classes_of(reading, config)
    if labels and time is None:  # in a split by time a class may be whole in one part
        labels = common_classes(reading, labels, config)
    values = target_values(reading, config, labels)
    dates = times_of(reading, time, config)
    parts = split_of(reading, dates, values if labels else None, config, labels)
    matrix = matrix_of(reading, kinds, parts, folder_for(disk))
    cells = reading.cells
    when: NDArray[Any] = cells.line if dates is None else dates
    split = Split(**datasets(matrix, parts, when, values), embargo=config.embargo or 0 if dates is not None else 0)
    require_varied(split.train.target, labels, reading)
    made = made_of(config, matrix, reading, time)
    made |= {"time": time, "dropped_rows": reading.dropped, "task_why": why}
    report_columns(made, matrix.columns, parts)
    report_target(reading, matrix, config.target, labels)
    say(f"task    {described(config.target, labels)}: {why}; --task changes it")
    if config.class_weights != "none" and not labels:
        say("table   --class-weights has no effect: the target is a number")
    features = tuple(feature for column in matrix.columns for feature in features_of(column))
    feature_names = [feature["name"] for feature in features]
    report_unused(split.train, feature_names)
    codes = codes_of(matrix.columns)
    inputs, targets = scalers(split.train, codes, labels)
    require_near(matrix, inputs, feature_names, cells)
    report_crowded(split.train, inputs, feature_names)
    require_near(of_target(matrix, values), targets, [config.target], cells)
    return Task(
        file=file_of(cells),
        file_rows=len(cells.line),
        dates=when[np.sort(matrix.order)],
        split=split,
        inputs=inputs,
        targets=targets,
        target=target_of(config, labels),
        features=features,
        made=made,
        class_weights=class_weights(split.train.target, config.class_weights, len(labels)) if labels else None,
        labels=labels,
        embeddings=tuple(codes.values()),
        horizon=None,
        split_how=parts.how,
    )


def report_target(reading: Reading, matrix: Matrix, target: str, labels: Sequence[str] | None) -> None:
    """Report words that differ by case alone, and numbers of a target that seem to stand for a missing value.

    Args:
        target: name of the column that is learned.
        labels: its classes; None for a number.
    """
    report_alike(words_of(matrix.columns, target, labels))
    if not labels:
        report_sentinels(reading, [target])


def opened(config: TableConfig, disk: Path | None) -> tuple[Reading, list[str], str | None]:
    """Return the table, the names of its columns that become inputs, and that of the one that orders the rows."""
    folder = folder_for(disk)
    cells = read_cells(config.data, folder=folder, on_bad_row=config.reading.on_bad_row)
    if "lines_in_front" in cells.read:
        say(f"table   lines in front of the header are left out: {cells.read['lines_in_front']}")
    if "encoding" in cells.read:
        say(f"table   not UTF-8, so read as {cells.read['encoding']}")
    require_single(cells, [config.target])
    if "numbered_names" in cells.read:
        say(f"table   its name stands before it, too, so called: {listed(cells.read['numbered_names'])}")
    require_columns(cells, [config.target, *config.columns.ignore, *config.columns.categories])
    time = time_column(cells, config)
    left_out = {config.target, time, *config.columns.ignore}
    names = flat_of(cells, [name for name in cells.types if name not in left_out])
    if not names:
        what, advice = "no column is left as an input", ""
        if time:
            what += f": {time!r} orders the rows, and times are no inputs"
            advice = "Give the table another column, such as the hour or the month as a number."
        raise TrainerError("RM580", what=what, where=str(cells.path), next=advice)
    require_flat(cells, config.target)
    held = {config.target} if folder else {config.target, *names}
    reading = Reading(cells=cells, held=held, kept=np.ones(len(cells.line), np.bool_))
    if cells.ragged:
        reading.dropped[RAGGED] = len(cells.ragged)
    settle_marks(reading, [*names, config.target], config)
    return reading, names, time


def settled(reading: Reading, names: Sequence[str], config: TableConfig) -> Kinds:
    """Return what each column is taken for; wrong and missing cells are treated by the policies.

    Columns without any value and those of names or free text are left out, and reported.

    Args:
        names: columns that are inputs.

    Raises:
        TrainerError: RM580 where no column is left, or numbers would become words.
    """
    kinds, marked, half, coded, unique = {}, {}, {}, [], {}
    empty = [name for name in names if reading.parsed(name).missing[reading.kept].all()]
    if empty and len(empty) == len(names):
        raise TrainerError("RM580", what="no column has a value as an input", where=str(reading.cells.path))
    if empty:
        say(f"table   left out, without any value: {', '.join(empty)}")
    for name in [name for name in names if name not in empty]:
        kinds[name] = kind_of(name, reading.parsed(name), config.columns.categories)
        if kinds[name][0] == "category" and name not in config.columns.categories:
            marked[name] = first_marked(reading, name)
            words = None if marked[name] else unique_words(reading.parsed(name), reading.kept)
            if words is not None:
                unique[name] = words
                del kinds[name]
                continue
            report_total(name, reading.parsed(name))
            if marked[name] is None and (found_mixed := mixed(reading.parsed(name), reading.kept)):
                half[name] = found_mixed
        elif kinds[name][0] == "number" and is_coded(reading.parsed(name).column):
            coded.append(name)
        settle_wrong(reading, name, kinds[name][0], config)
        settle_missing(reading, name, config)
        if kinds[name][0] == "number":
            report_sentinels(reading, [name])
    if found := {name: cell for name, cell in marked.items() if cell is not None}:
        raise refuse_marked(found, reading.cells.path)
    report_unique(unique)
    if not kinds:
        advice = "Give the table a column of numbers or of fewer words, or keep words with --categories."
        what = "no column but names or free text is left as an input"
        raise TrainerError("RM580", what=what, where=str(reading.cells.path), next=advice)
    report_mixed(half)
    report_coded(coded)
    return kinds


def made_of(config: TableConfig, matrix: Matrix, reading: Reading, time: str | None) -> dict[str, Any]:
    """Return how inputs were made, for the metadata.

    Args:
        time: name of the column that orders the rows; None without one.
    """
    used = {config.target, time, *config.columns.ignore, *(column.name for column in matrix.columns)}
    return {
        "set": "table",
        "why": "--features table" if config.features == "table" else f"--target names the column {config.target!r}",
        "columns": [column.as_dict() for column in matrix.columns],
        "kinds_from": "all rows; medians and categories from training rows alone",
        "missing": {
            "policy": config.missing,
            "words": [*MISSING, *sorted(reading.marks - set(MISSING))],
            "cells": {name: count for name, count in matrix.missing.items() if count},
        },
        "unknown": config.columns.unknown,
        "ignored": [*config.columns.ignore, *(name for name in reading.cells.types if name not in used)],
    }


def scalers(train: Dataset, codes: Mapping[int, dict[str, int]], labels: Sequence[str] | None) -> tuple[Scaler, Scaler]:
    """Return those of inputs and target; codes of categories stay as they are, and so do classes.

    Args:
        codes: codes of each categorical feature, by its place.
        labels: names of the classes; None for a number as target.
    """
    inputs = Scaler.fit(train.features)
    inputs.mean[list(codes)], inputs.std[list(codes)] = 0.0, 1.0
    return inputs, Scaler.identity() if labels else Scaler.fit(train.target)


def of_target(matrix: Matrix, values: Floats) -> Matrix:
    """Return the target of the same rows as a matrix of one column."""
    return replace(matrix, values=values[matrix.order][:, np.newaxis])


def target_of(config: TableConfig, labels: Sequence[str] | None) -> Target:
    """Return what is forecast."""
    unit = "class" if labels else "the column's own"
    return Target(name=config.target, formula=f"column {config.target!r}", unit=unit, classes=len(labels or ()))


def time_column(cells: Cells, config: TableConfig) -> str | None:
    """Return the column that orders the rows: the one named, or one that is called like a time and holds times.

    Raises:
        TrainerError: RM580 where the column named is none.
    """
    if config.columns.time_column == "none":
        return None
    if config.columns.time_column != "auto":
        require_columns(cells, [config.columns.time_column])
        return config.columns.time_column
    others = [
        name for name in cells.types if name not in (config.target, *config.columns.ignore, *config.columns.categories)
    ]
    typed = [name for name in others if cells.types[name] in (pl.Datetime, pl.Date)]
    called = [name for name in others if plain(name) in SPELLINGS["date"] and cells.types[name] == pl.String]
    return next((name for name in (*typed, *called) if name in typed or are_times(cells.column(name))), None)


def times_of(reading: Reading, time: str | None, config: TableConfig) -> NDArray[Any] | None:
    """Return the time of each row, None without a time column; rows without a time are refused or dropped.

    Args:
        time: name of the time column; None without one.
    """
    if time is None:
        return None
    cells = reading.cells
    text = cells.column(time)
    text = text.dt.to_string("iso:strict") if isinstance(text.dtype, pl.Datetime) else text.cast(pl.String)
    zone = config.reading.time_zone
    form = find_format(text.head(1000), cells.place(0), config.reading.time_format)
    read = parse(text, form, zone, None)
    unreadable = read.unreadable & reading.kept
    if unreadable.any() and config.reading.on_bad_row in REFUSING:
        raise refuse_time(reading, time, text, unreadable, zone)
    reading.drop(read.unreadable, f"{time} is no time")
    return read.at


def split_of(
    reading: Reading,
    dates: NDArray[Any] | None,
    classes: Floats | None,
    config: TableConfig,
    labels: Sequence[str] | None = None,
) -> Parts:
    """Return the parts, of the share --data-fraction of the rows: the latest, or without time a draw.

    Args:
        dates: time of each row, shape (rows,); None for a draw at random.
        classes: class of each row, shape (rows,); None for a number as target.
        labels: names of the classes, for messages.
    """
    rows = np.flatnonzero(reading.kept)
    if dates is not None:
        order = rows[np.argsort(dates[rows], kind="stable")]
        parts = by_time(order[len(order) - math.ceil(len(order) * config.data_fraction) :], config.embargo or 0)
    else:
        if classes is not None and labels:
            require_rows(classes[rows], labels, config.target)
        count = math.ceil(len(rows) * config.data_fraction)
        draw = np.random.default_rng(config.split_seed).permutation(rows)[:count]
        drawn = rows if count == len(rows) else np.sort(draw)
        parts = at_random(drawn, None if classes is None else classes[drawn].astype(np.int64), config.split_seed)
    if classes is not None:
        require_trained(classes, parts)
    return parts


def require_trained(classes: Floats, parts: Parts) -> None:
    """Raise RM583 where validation or test hold a class that the training part lacks."""
    new = np.setdiff1d(classes[np.concatenate([parts.validation, parts.test])], classes[parts.train])
    if len(new):
        raise TrainerError("RM583", what=f"{len(new)} of the classes stand only in later rows than the training part's")


def require_varied(target: Floats, labels: Sequence[str] | None, reading: Reading) -> None:
    """Raise RM518 for a target that never changes.

    Args:
        target: targets of all rows, shape (rows,).
        labels: names of the classes; None for a number as target.
    """
    if np.ptp(target) == 0:
        shown = repr(shortened(labels[int(target[0])])) if labels else f"{target[0]:.6g}"
        why = "; ".join(f"{counted(count, 'row')} dropped: {cause}" for cause, count in reading.dropped.items())
        what = f"all {len(target)} training targets are {shown}"
        raise TrainerError("RM518", what=what, where=str(reading.cells.path), why=why)


def codes_of(columns: Sequence[Column]) -> dict[int, dict[str, int]]:
    """Return the embedding of each categorical column by the place of its input."""
    found: dict[int, dict[str, int]] = {}
    place = 0
    for column in columns:
        if column.kind == "category":
            values = len(column.categories) + 1
            found[place] = {"column": place, "values": values, "width": embedding_width(values)}
        place += len(features_of(column))
    return found


def file_of(cells: Cells) -> DataFile:
    """Return what is recorded about a table's file."""
    digest = digest_of(cells.path)
    source = recorded_source(cells.path.parent, digest)
    return DataFile(name=cells.path.name, sha256=digest, source=source, read=cells.read)


def described(target: str, labels: Sequence[str] | None) -> str:
    """Return what is learned: a number, or which classes."""
    if not labels:
        return f"{shortened(target)!r} is a number"
    more = f" and {len(labels) - MOST_SHOWN} more" if len(labels) > MOST_SHOWN else ""
    names = ", ".join(map(shortened, labels[:MOST_SHOWN]))
    return f"{shortened(target)!r} is one of {len(labels)} classes ({names}{more})"
