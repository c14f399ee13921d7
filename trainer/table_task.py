"""The learning task of a table: one column from the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.config import TrainConfig
from trainer.data.bars import Floats
from trainer.data.columns import MISSING, Column, encode, features_of, fit_column, kind_of, parse_cells
from trainer.data.dataset import Dataset, Target, class_weights
from trainer.data.files import DataFile, digest_of, recorded_source
from trainer.data.names import SPELLINGS, plain
from trainer.data.split import FURTHEST, Scaler, Split
from trainer.data.table_split import Parts, at_random, by_time
from trainer.data.tabular import Cells, read_cells
from trainer.data.times import find_format, parse
from trainer.errors import TrainerError, suggestion
from trainer.events import say
from trainer.models.embedded import embedding_width
from trainer.prepared import Task
from trainer.table_reading import Reading, settle_missing, settle_wrong
from trainer.table_target import classes_of, require_apart, target_values


def prepare_table(config: TrainConfig) -> Task:
    """Read, clean, split, encode and scale a table.

    Raises:
        TrainerError: RM510, RM511, RM516 to RM518 and RM580 to RM583, where the table is wrong or holds too little,
            RM500 for a target that is to be left out, too.
    """
    require_apart(config)
    cells = read_cells(config.data)
    require_columns(cells, [config.target, *config.ignore, *config.categories])
    time = time_column(cells, config)
    left_out = {config.target, time, *config.ignore}
    names = [name for name in cells.table.columns if name not in left_out]
    if not names:
        raise TrainerError("RM580", what="no column is left as an input", where=str(cells.path))
    parsed = {name: parse_cells(cells.table[name]) for name in [*names, config.target]}
    reading = Reading(cells=cells, parsed=parsed, kept=np.ones(len(cells.line), np.bool_), dropped={})
    kinds = {name: kind_of(name, parsed[name], config.categories) for name in names}
    for name, (kind, _) in kinds.items():
        settle_wrong(reading, name, kind, config)
        settle_missing(reading, name, config)
    labels, why = classes_of(reading, config)
    values = target_values(reading, config, labels)
    dates = times_of(reading, time, config)
    parts = split_of(reading, dates, values if labels else None, config)
    columns = [fit_column(name, *kinds[name], parsed[name], parts.train) for name in names]
    matrix = np.column_stack([value for column in columns for value in encode(column, parsed[column.name])[0]])
    when = cells.line if dates is None else dates
    split = Split(
        **{part: dataset(when, matrix, values, getattr(parts, part)) for part in ("train", "validation", "test")},
        embargo=config.embargo or 0 if dates is not None else 0,
    )
    require_varied(split.train.target, labels, cells)
    used = np.sort(np.concatenate([parts.train, parts.validation, parts.test]))
    features = tuple(feature for column in columns for feature in features_of(column))
    missing = {name: int(parsed[name].missing[reading.kept].sum()) for name in names}
    made = {
        "set": "table",
        "why": "--features table" if config.features == "table" else f"--target names the column {config.target!r}",
        "columns": [column.as_dict() for column in columns],
        "kinds_from": "all rows; medians and categories from training rows alone",
        "missing": {
            "policy": config.missing,
            "words": list(MISSING),
            "cells": {name: count for name, count in missing.items() if count},
        },
        "unknown": config.unknown,
        "time": time,
        "ignored": list(config.ignore),
        "dropped_rows": reading.dropped,
        "task_why": why,
    }
    tell(made, columns, parts)
    scaler = Scaler.fit(split.train.features)
    codes = codes_of(columns)
    scaler.mean[list(codes)], scaler.std[list(codes)] = 0.0, 1.0
    targets = Scaler.identity() if labels else Scaler.fit(split.train.target)
    for place, feature in enumerate(features):
        require_near(matrix[:, place], scaler.mean[place], scaler.std[place], feature["name"], used, cells)
    require_near(values, targets.mean.item(), targets.std.item(), config.target, used, cells)
    return Task(
        file=file_of(cells),
        file_rows=len(cells.line),
        dates=when[used],
        split=split,
        inputs=scaler,
        targets=targets,
        target=Target(
            name=config.target,
            formula=f"column {config.target!r}",
            unit="class" if labels else "the column's own",
            classes=len(labels or ()),
        ),
        features=features,
        made=made,
        class_weights=class_weights(split.train.target, config.class_weights, len(labels)) if labels else None,
        labels=labels,
        embeddings=tuple(codes.values()),
        horizon=None,
        split_how=parts.how,
    )


def require_columns(cells: Cells, names: Sequence[str]) -> None:
    """Raise RM580 for a name that is no column, with the nearest that is one."""
    for name in names:
        if name not in cells.table.columns:
            hint = suggestion(name, cells.table.columns)
            raise TrainerError("RM580", what=f"no column {name!r}; {hint}", where=str(cells.path))


def time_column(cells: Cells, config: TrainConfig) -> str | None:
    """Return the column that orders the rows: the one named, or one that is called like a time and holds times.

    Raises:
        TrainerError: RM580 where the column named is none.
    """
    if config.time_column == "none":
        return None
    if config.time_column != "auto":
        require_columns(cells, [config.time_column])
        return config.time_column
    others = [name for name in cells.table.columns if name not in (config.target, *config.ignore, *config.categories)]
    typed = [name for name in others if cells.table[name].dtype.is_temporal()]
    called = [name for name in others if plain(name) in SPELLINGS["date"] and cells.table[name].dtype == pl.String]
    return next((name for name in (*typed, *called) if name in typed or _holds_times(cells, name)), None)


def _holds_times(cells: Cells, name: str) -> bool:
    text = cells.table[name]
    if text.cast(pl.Float64, strict=False).is_not_null().any():
        return False  # numbers may be anything: one that is a time has to be named
    try:
        find_format(text.head(1000), cells.place(0))
    except TrainerError:
        return False
    return True


def times_of(reading: Reading, time: str | None, config: TrainConfig) -> NDArray[Any] | None:
    """Return the time of each row, None without a time column; rows without a time are refused or dropped."""
    if time is None:
        return None
    cells = reading.cells
    text = cells.table[time]
    text = text.dt.to_string("iso:strict") if isinstance(text.dtype, pl.Datetime) else text.cast(pl.String)
    form = find_format(text.head(1000), cells.place(0), config.time_format)
    read = parse(text, form, config.time_zone, None)
    unreadable = read.unreadable & reading.kept
    if unreadable.any() and config.on_bad_row == "error":
        row = int(np.flatnonzero(unreadable)[0])
        raise TrainerError("RM580", what=f"{text[row]!r} in column {time!r} is no time", where=cells.place(row))
    reading.drop(read.unreadable, f"{time} is no time")
    return read.at


def split_of(reading: Reading, dates: NDArray[Any] | None, classes: Floats | None, config: TrainConfig) -> Parts:
    """Return the parts, of the share --data-fraction of the rows: the latest, or without time a draw."""
    rows = np.flatnonzero(reading.kept)
    if dates is not None:
        order = rows[np.argsort(dates[rows], kind="stable")]
        parts = by_time(order[len(order) - math.ceil(len(order) * config.data_fraction) :], config.embargo or 0)
    else:
        count = math.ceil(len(rows) * config.data_fraction)
        draw = np.random.default_rng(config.split_seed).permutation(rows)[:count]
        drawn = rows if count == len(rows) else np.sort(draw)
        parts = at_random(drawn, None if classes is None else classes[drawn].astype(np.int64), config.split_seed)
    if classes is not None:
        require_trained(classes, parts)
    return parts


def require_trained(classes: Floats, parts: Parts) -> None:
    """Raise RM583 where validation or test hold a class that training never met."""
    new = np.setdiff1d(classes[np.concatenate([parts.validation, parts.test])], classes[parts.train])
    if len(new):
        raise TrainerError("RM583", what=f"{len(new)} of the classes stand only in later rows than the training part's")


def require_varied(target: Floats, labels: Sequence[str] | None, cells: Cells) -> None:
    """Raise RM518 for a target that never changes."""
    if np.ptp(target) == 0:
        shown = repr(labels[int(target[0])]) if labels else f"{target[0]:.6g}"
        raise TrainerError("RM518", what=f"all {len(target)} training targets are {shown}", where=str(cells.path))


def require_near(values: Floats, mean: float, std: float, name: str, used: NDArray[np.int64], cells: Cells) -> None:
    """Raise RM580 for a value of the `used` rows that is too far from training's to be computed with in 32 bits."""
    far = used[np.abs(values[used] - mean) / std > FURTHEST]
    if len(far):
        away = f"{abs(values[far[0]] - mean) / std:.0e} standard deviations from the training rows' mean"
        what = f"{values[far[0]]:g} in column {name!r} is {away}, too far for 32 bits"
        raise TrainerError("RM580", what=what, where=cells.place(int(far[0])))


def dataset(when: NDArray[Any], matrix: NDArray[Any], values: Floats, rows: NDArray[np.int64]) -> Dataset:
    """Return rows of a table; nothing is known of an earlier target, so there is no persistence."""
    unknown = np.full(len(rows), np.nan)
    return Dataset(date=when[rows], features=matrix[rows], target=values[rows], persistence=unknown)


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


def tell(made: dict[str, Any], columns: Sequence[Column], parts: Parts) -> None:
    """Say what was found and chosen: kinds of columns, missing values, dropped rows, the split."""
    kinds: dict[Literal["number", "category"], int] = {"number": 0, "category": 0}
    for column in columns:
        kinds[column.kind] += 1
    by = "time" if parts.how["by"] == "time" else f"seed {parts.how['seed']}"
    words = [f"table   {kinds['number']} columns of numbers, {kinds['category']} of categories; split by {by}"]
    cells = made["missing"]["cells"]
    if cells:
        policy = made["missing"]["policy"]
        words.append(f"{sum(cells.values()):,} missing values in {', '.join(cells)}: --missing {policy}")
    words += [f"{count:,} rows dropped: {why}" for why, count in made["dropped_rows"].items()]
    say("; ".join(words))
