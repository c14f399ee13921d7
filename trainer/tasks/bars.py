"""The learning task of bars: its rows, their split and their scaling."""

from __future__ import annotations

import math
import sys
import tempfile
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.config.sections.bars import BarsConfig
from trainer.config.sections.table import TableConfig
from trainer.data.bar import Bars, Dates, joined
from trainer.data.dataset import TARGETS, Dataset, class_weights, dataset_of, rows_of
from trainer.data.features.build_features import cached, reading_of, start_build
from trainer.data.features.daily_features import feature_matrix, features_for
from trainer.data.features.feature_file import FeatureTable, read_table
from trainer.data.features.inspect import DataSummary, inspect_data
from trainer.data.features.progress import bar_counter
from trainer.data.loading.chunks import chunks, mapped
from trainer.data.readers.bars import Source, open_source
from trainer.data.readers.data_file import DataFile, data_file
from trainer.data.sessions import wall_clock
from trainer.data.split import Scaler, split_by_time
from trainer.runtime.errors import TrainerError, suggestion
from trainer.runtime.signals import ends_on_sigterm
from trainer.tasks import assumptions
from trainer.tasks.prepared import Task, folder_for
from trainer.tasks.tables.prepare import prepare_table


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Rows of one feature set, before they are split."""

    file: DataFile
    file_rows: int
    dates: Dates
    rows: Dataset
    features: tuple[dict[str, Any], ...]
    made: dict[str, Any] = field(default_factory=dict)
    past_too_short: int = 0
    sessions: str = ""


def prepare(config: BarsConfig | TableConfig, *, disk: Path | None = None, shown: bool = False) -> Task:
    """Read, cut, split and scale the data.

    Args:
        config: the settings of bars or of a table.
        disk: folder for rows that are mapped, None where they are held in memory.
        shown: with a progress line while features are computed.

    Raises:
        TrainerError: RM510 to RM518, RM571 to RM583, where the file is wrong or holds too little.
    """
    with suppress(OSError):  # whoever opens it reports that
        if config.data.is_fifo():
            what = "the data are read more than once, and a pipe can be read once"
            raise TrainerError("RM510", what=what, where=str(config.data), next="Write them to a file first.")
    if isinstance(config, TableConfig):
        return prepare_table(config, disk=disk)
    return prepare_bars(config, disk=disk, shown=shown)


def prepare_bars(config: BarsConfig, *, disk: Path | None = None, shown: bool = False) -> Task:
    """Make a task of bars: what the next --horizon of them do.

    Args:
        disk: folder for mapped rows; None keeps them in memory.
        shown: show progress on standard error.
    """
    embargo, labels = _checked(config)
    source = open_source(config.data, reading_of(config.inputs))
    found = inspect_data(source)
    daily = config.features == "daily" or (config.features == "auto" and found.daily)
    ready = daily_rows(config, source, found) if daily else intraday_rows(config, source, found, disk=disk, shown=shown)
    try:
        split = split_by_time(ready.rows, embargo=embargo)
    except TrainerError as error:
        raise (error if daily else assumptions.too_short(error, ready.made)) from None
    task = Task(
        file=ready.file,
        file_rows=ready.file_rows,
        dates=ready.dates,
        split=split,
        inputs=Scaler.fit(split.train.features),
        targets=Scaler.identity() if labels else Scaler.fit(split.train.target),
        target=TARGETS[config.target],
        features=ready.features,
        made=ready.made,
        class_weights=class_weights(split.train.target, config.class_weights) if labels else None,
        labels=labels,
        horizon=config.horizon,
    )
    past = ready.past_too_short
    rows = assumptions.of_rows(len(ready.dates), len(ready.rows), config.horizon, embargo, past)
    left_out = ready.made.get("left_out", {}) if not daily else assumptions.left_out_of_days(ready.features)
    joined_line = assumptions.of_join(ready.file.read.get("joined"))
    features = [*assumptions.of_left_out(left_out, path=config.data), assumptions.of_features(task)]
    lines = (*assumptions.of_file(source, weekend=found.weekend), *joined_line, ready.sessions, rows, *features)
    return replace(task, assumptions=lines)


def _checked(config: BarsConfig) -> tuple[int, tuple[str, ...] | None]:
    """Return the embargo in bars and the classes, None for a number. Raises RM500 for what does not go together."""
    if config.target not in TARGETS:
        what = f"--target {config.target}: {suggestion(config.target, TARGETS)}"
        raise TrainerError("RM500", what=what, next="A column of any table is a target with --features table.")
    embargo = config.horizon if config.embargo is None else config.embargo
    if embargo < config.horizon:
        raise TrainerError(
            "RM500", what=f"--embargo {embargo} is below --horizon {config.horizon}: targets would overlap"
        )
    labels = labels_of(config)
    if config.class_weights != "none" and not labels:
        raise TrainerError("RM500", what=f"--class-weights needs classes: --target direction, not {config.target}")
    wall_clock(np.zeros(1, "M8[s]"), config.inputs.sessions.session_zone)  # days have no session, but a typo is one
    return embargo, labels


def labels_of(config: BarsConfig) -> tuple[str, ...] | None:
    """Return the classes of a target of bars, None for a number; --task regression takes a direction for 0 and 1."""
    classes = TARGETS[config.target].classes
    if config.task == "classification" and not classes:
        raise TrainerError("RM500", what=f"--task classification needs --target direction, not {config.target}")
    return ("0", "1") if classes and config.task != "regression" else None


def chosen(config: BarsConfig, found: DataSummary) -> str:
    """Return why a feature set was taken."""
    if config.features != "auto":
        return f"--features {config.features}"
    return f"most bars are {found.spacing:,} s apart; from 20 hours on they are taken for days"


def daily_rows(config: BarsConfig, source: Source, found: DataSummary) -> Prepared:
    """Return the rows of daily bars; all bars of the file are held.

    The rows are those of the latest --data-fraction of the bars; their features may look back to bars before these.
    """
    parts = list(source.chunks())
    bars: Bars = joined(parts)
    used = bars[first_used(len(bars), config) :]
    rows = make_dataset(bars, config.horizon, config.target)
    features = tuple(
        {"name": f.name, "formula": f.formula, "unit": f.unit, "lookback": f.lookback} for f in features_for(bars)
    )
    return Prepared(
        file=data_file(source),
        file_rows=len(bars),
        dates=used.date,
        rows=rows[int(np.searchsorted(rows.date, used.date[0])) :],
        features=features,
        made={"set": "daily", "why": chosen(config, found), "bar_seconds": found.spacing},
        past_too_short=int((~np.isfinite(feature_matrix(bars)[-len(used) :]).all(axis=1)).sum()),
        sessions=assumptions.of_days(found.spacing),
    )


def make_dataset(bars: Bars, horizon: int, target: str = "volatility") -> Dataset:
    """Return the rows of daily bars whose features and whose target, `horizon` bars ahead, are both known.

    Args:
        horizon: bars between a row and its target.
        target: name of the target, as `--target` takes it.
    """
    whole = np.zeros(len(bars), np.int64)
    return rows_of(bars.date, bars.close, whole, feature_matrix(bars), horizon=horizon, target=target)


def intraday_rows(
    config: BarsConfig, source: Source, found: DataSummary, *, disk: Path | None = None, shown: bool = False
) -> Prepared:
    """Return the rows of intraday bars, by way of a feature file, which is kept where there is a cache folder.

    Args:
        disk: folder for mapped rows; None keeps them in memory.
        shown: show progress on standard error.
    """
    if found.daily:
        raise TrainerError("RM579", what="these are daily bars, without sessions", where=str(source.path))
    build = start_build(config.inputs, source, found)
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="features-", dir=folder_for(disk))
        folder = config.inputs.cache or Path(stack.enter_context(temporary))
        with bar_counter(sys.stderr) if shown else nullcontext(build.progress) as build.progress, ends_on_sigterm():
            path, hit = cached(build, folder)
        table = read_table(path)
        table = table.since(first_used(len(table.date), config))
        finite = finite_rows(table)
        rows = table_rows(table, finite, config, disk)
    record = table.record
    kept = ("key", "conventions", "left_out", "rows", "code")
    return Prepared(
        file=DataFile(**record["input"]),
        file_rows=record["rows"]["bars"],
        dates=table.date,
        rows=rows,
        features=tuple({**feature, "lookback": None} for feature in record["features"]),
        past_too_short=int((~finite).sum()),
        sessions=assumptions.of_sessions(record, found.day_ticks),
        made={"set": "intraday", "why": chosen(config, found), "cached": hit, **{name: record[name] for name in kept}},
    )


def finite_rows(table: FeatureTable) -> NDArray[np.bool_]:
    """Return which rows of a feature file have a past that is long enough for every feature, (bars,)."""
    return np.concatenate([np.isfinite(table.rows(piece)).all(axis=1) for piece in chunks(len(table.date))])


def table_rows(table: FeatureTable, finite: NDArray[np.bool_], config: BarsConfig, disk: Path | None) -> Dataset:
    """Return the rows of a feature file, read a piece at a time; with --feed mapped they are in a file again.

    Args:
        finite: whether all features of a bar are known, shape (bars,).
        disk: folder for mapped rows; None keeps them in memory.
    """
    bars = list(chunks(len(table.date)))

    def features(known: NDArray[np.bool_]) -> NDArray[np.float32]:
        parts = (table.rows(piece)[known[piece]] for piece in bars)
        return np.concatenate(list(parts)) if disk is None else mapped(parts, folder_for(disk))

    past = (table.date, table.close, table.session)
    return dataset_of(*past, finite, features, horizon=config.horizon, target=config.target)


def first_used(bars: int, config: BarsConfig) -> int:
    """Return the first of the latest bars that make up --data-fraction."""
    return bars - math.ceil(bars * config.data_fraction)
