"""Settings of a file of rows, shared by bars and tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from trainer.config.choices import (
    BAD_ROW_POLICIES,
    BASELINES,
    CLASS_WEIGHTS,
    FEATURE_SETS,
    TASKS,
    BadRowPolicy,
)
from trainer.config.parsing import column_roles, number, one_of, or_auto, path, text, whole
from trainer.config.setting import Flag, OnResume
from trainer.runtime.paths import SAMPLE

_fixed = partial(Flag, recipe="data", resume=OnResume.FIXED)


@dataclass(frozen=True, kw_only=True)
class FileConfig:
    """The file, and the kind of task."""

    title: ClassVar[str] = "Data"
    data: Annotated[
        Path,
        Flag(
            "bars, or any table: CSV (also .gz, .zst, .zip, .bz2, .xz), Parquet, Arrow; with --task lm: text or JSONL",
            path,
            "data",
            OnResume.KEPT,
            common=True,
        ),
    ] = SAMPLE
    task: Annotated[str, _fixed("auto: by the target; lm: a language model", one_of(*TASKS), common=True)] = "auto"


@dataclass(frozen=True, kw_only=True)
class TargetConfig:
    """Settings of the target and its inputs."""

    title: ClassVar[str] = "Data"
    features: Annotated[
        str,
        _fixed(
            "auto: by the spacing of the bars, a table where --target names a column",
            one_of(*FEATURE_SETS),
            common=True,
        ),
    ] = "auto"
    target: Annotated[
        str,
        _fixed(
            "volatility, return or direction of the next --horizon bars, or the name of a table's column",
            text,
            common=True,
        ),
    ] = "volatility"
    embargo: Annotated[
        int | None,
        _fixed("rows dropped between parts, at least --horizon; auto: --horizon (default: auto)", or_auto(whole(1))),
    ] = None
    class_weights: Annotated[
        str, _fixed("class weights in the loss; balanced: inverse to their frequency", one_of(*CLASS_WEIGHTS))
    ] = "none"


@dataclass(frozen=True, kw_only=True)
class RowsConfig(TargetConfig, FileConfig):
    """Settings shared by bars and tables."""

    title: ClassVar[str] = "Data"
    data_fraction: Annotated[float, _fixed("share of the rows to use, the latest ones", number(1))] = 1.0
    baselines: Annotated[
        str,
        Flag(
            "simpler models next to the network; auto: linear and trees, on bars linear",
            one_of(*BASELINES),
            "data",
            OnResume.KEPT,
            sparse=True,
        ),
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class ReadingConfig:
    """Settings of reading a file of rows."""

    title: ClassVar[str] = "Data: reading"
    chunk_size: Annotated[int, Flag("rows read at a time; changes memory, never values", whole(1), "data")] = 100_000
    on_bad_row: Annotated[
        BadRowPolicy,
        _fixed(
            "bad rows, counted by kind; few: of bars up to 1 % are left out, in a table words among an input's numbers "
            "are missing values, all else is an error",
            one_of(*BAD_ROW_POLICIES),
        ),
    ] = "few"
    time_zone: Annotated[str, _fixed("IANA zone of times that name none")] = "America/New_York"
    time_format: Annotated[str | None, _fixed("strftime pattern of the times (default: found)")] = None
    columns: Annotated[
        tuple[str, ...],
        _fixed(
            "columns by role: date=NAME,close=NAME,volume=none; a number counts from 1 (default: found)",
            column_roles,
            sparse=True,
        ),
    ] = ()
