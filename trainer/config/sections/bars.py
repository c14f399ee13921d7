"""Settings of price bars: sessions, volume profiles, a second file, and the target."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, get_args

from trainer.config import choices
from trainer.config.parsing import number, one_of, or_auto, path, session_hours, switch, whole
from trainer.config.sections.rows import ReadingConfig, RowsConfig
from trainer.config.setting import Flag, OnResume

MOST_ROWS = 2**31 - 1
_fixed = partial(Flag, recipe="data", resume=OnResume.FIXED)


@dataclass(frozen=True, kw_only=True)
class SessionConfig:
    """Settings of sessions: hours, time zone and half days."""

    title: ClassVar[str] = "Bars: sessions"
    session: Annotated[str, _fixed("hours of a session; over midnight where the end is not later", session_hours)] = (
        "09:30-16:00"
    )
    session_zone: Annotated[str, _fixed("IANA zone of the session's hours")] = "America/New_York"
    bar_time: Annotated[
        choices.BarTime, _fixed("whether a bar's time is its beginning or its end", one_of(*get_args(choices.BarTime)))
    ] = "begin"
    half_days: Annotated[
        choices.HalfDays,
        _fixed("sessions that close early; us: those of the NYSE", one_of(*get_args(choices.HalfDays))),
    ] = "us"


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """Settings of volume profiles, their point of control and their value area."""

    title: ClassVar[str] = "Bars: volume profiles"
    tick: Annotated[float | None, _fixed("price step; auto: found (default: auto)", or_auto(number(1e6)))] = None
    row_ticks: Annotated[int, _fixed("height of a profile's row in ticks", whole(1, 10**6))] = 1
    row_origin: Annotated[
        int, _fixed("tick at which the rows of a profile are anchored", whole(0, 10**9), sparse=True)
    ] = 0
    allocation: Annotated[
        choices.Allocation,
        _fixed(
            "a bar's volume: uniform over the rows of its range, at its close, or proportional to its part in each row",
            one_of(*get_args(choices.Allocation)),
        ),
    ] = "uniform"
    levels: Annotated[
        choices.Levels,
        _fixed(
            "price of a level in its row: its lowest or highest tick, or the middle; outer: value area to outer edges",
            one_of(*get_args(choices.Levels)),
            sparse=True,
        ),
    ] = "centre"
    rounding: Annotated[
        choices.Rounding, _fixed("how a tick is rounded to a row", one_of(*get_args(choices.Rounding)))
    ] = "floor"
    rows: Annotated[
        choices.Rows, _fixed("occupied: rows without volume do not exist", one_of(*get_args(choices.Rows)))
    ] = "dense"
    poc_tie: Annotated[
        choices.PocTie, _fixed("point of control where rows have equal volume", one_of(*get_args(choices.PocTie)))
    ] = "middle"
    expansion: Annotated[
        choices.Expansion, _fixed("rows by which the value area grows at a time", one_of(*get_args(choices.Expansion)))
    ] = "one"
    value_tie: Annotated[
        choices.ValueTie,
        _fixed("side that the value area grows to when both are equal", one_of(*get_args(choices.ValueTie))),
    ] = "up"
    value_area: Annotated[float, _fixed("share of the volume in the value area", number(1))] = 0.7
    reach: Annotated[
        choices.Reach,
        _fixed("the value area is complete at its share, or with more", one_of(*get_args(choices.Reach))),
    ] = "at_least"


@dataclass(frozen=True, kw_only=True)
class JoinConfig:
    """The VIX in a file of its own."""

    title: ClassVar[str] = "Bars: a second file"
    join: Annotated[
        Path | None,
        Flag(
            "file with the VIX: each bar gets the last close known at its end (default: none)",
            path,
            "data",
            OnResume.KEPT,
            sparse=True,
        ),
    ] = None
    join_time: Annotated[
        choices.BarTime | None,
        _fixed(
            "whether the second file's times are its bars' beginning or end; auto: as --bar-time (default: auto)",
            or_auto(one_of(*get_args(choices.BarTime))),
            sparse=True,
        ),
    ] = None
    join_tolerance: Annotated[
        int | None,
        _fixed(
            "age in seconds up to which a joined value counts; auto: ten steps of its file, five days where daily "
            "(default: auto)",
            or_auto(whole(0, 10**9)),
            sparse=True,
        ),
    ] = None
    join_outside: Annotated[
        choices.JoinOutside,
        _fixed(
            "bar without such a value: carry the older one forward, drop the bar, or end with an error",
            one_of(*get_args(choices.JoinOutside)),
            sparse=True,
        ),
    ] = "carry"


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """Settings of the features of bars: all that decides them, and two that change only the time."""

    title: ClassVar[str] = "Bars"
    reading: ReadingConfig = field(default_factory=ReadingConfig)
    sessions: SessionConfig = field(default_factory=SessionConfig)
    profile: ProfileConfig = field(default_factory=ProfileConfig)
    second: JoinConfig = field(default_factory=JoinConfig)
    workers: Annotated[
        int | None,
        Flag(
            "processes that compute features; auto: one per processor for large files (default: auto)",
            or_auto(whole(1, 256)),
            "data",
        ),
    ] = None
    cache: Annotated[Path | None, Flag("folder that keeps computed features (default: none)", path, "data")] = None


@dataclass(frozen=True, kw_only=True)
class BarsConfig(RowsConfig):
    """Settings of bars."""

    title: ClassVar[str] = "Bars"
    horizon: Annotated[int, _fixed("bars ahead over which the target is taken", whole(1, MOST_ROWS), common=True)] = 5
    inputs: FeatureConfig = field(default_factory=FeatureConfig)


@dataclass(frozen=True, kw_only=True)
class FeaturesConfig:
    """The settings of `python -m trainer features`; each field is the flag of the same name."""

    title: ClassVar[str] = "Data"
    data: Annotated[Path | None, Flag("intraday bars: CSV, Parquet or Arrow", path, "data")] = None
    out: Annotated[Path | None, Flag("Arrow file to write; its metadata goes to FILE.json", path, "run")] = None
    list: Annotated[bool, Flag("print name, formula and unit of every feature, and compute none", switch, "run")] = (
        False
    )
    features: Annotated[
        str, _fixed("features of what kind of bars; auto: by their spacing", one_of(*choices.FEATURE_SETS), common=True)
    ] = "auto"
    inputs: FeatureConfig = field(default_factory=FeatureConfig)
