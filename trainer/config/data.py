"""How data is read and what is made of it: the settings that `train` and `features` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from trainer.config.parsing import Flag, column_roles, number, one_of, or_auto, session_hours, whole


def _data(help: str, parse: Callable[[str], Any] = str) -> Flag:
    return Flag(help, parse, "data")


def _later(help: str, parse: Callable[[str], Any] = str) -> Flag:
    """Return a flag that runs of earlier trainers do not have: recorded only where it is not the default."""
    return Flag(help, parse, "data", sparse=True)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Settings of data, features and targets; each field is the flag of the same name."""

    features: Annotated[
        str,
        _data(
            "daily, intraday, table, or auto: by the spacing of the bars, a table where --target names a column",
            one_of("auto", "daily", "intraday", "table"),
        ),
    ] = "auto"
    target: Annotated[
        str,
        _data("volatility, return or direction of the next --horizon bars, or the name of a table's column"),
    ] = "volatility"
    embargo: Annotated[
        int | None,
        _data("rows dropped between parts, at least --horizon, or auto: --horizon (default: auto)", or_auto(whole(1))),
    ] = None
    class_weights: Annotated[
        str, _data("of classes: none, or balanced by the training part", one_of("none", "balanced"))
    ] = "none"
    chunk_size: Annotated[int, _data("rows read at a time; changes memory, never values", whole(1))] = 100_000
    on_bad_row: Annotated[
        str, _data("error, drop or repair; every kind is counted in the metadata", one_of("error", "drop", "repair"))
    ] = "error"
    time_zone: Annotated[str, _data("IANA zone of times that name none")] = "America/New_York"
    time_format: Annotated[str | None, _data("strftime pattern of the times (default: found)")] = None
    columns: Annotated[
        tuple[str, ...],
        _later("which column is what: date=NAME,close=NAME; a number counts from 1 (default: found)", column_roles),
    ] = ()
    session: Annotated[str, _data("hours of a session; over midnight where the end is not later", session_hours)] = (
        "09:30-16:00"
    )
    session_zone: Annotated[str, _data("IANA zone of the session's hours")] = "America/New_York"
    bar_time: Annotated[str, _data("whether a bar's time is its begin or its end", one_of("begin", "end"))] = "begin"
    half_days: Annotated[str, _data("us: NYSE's early closes; none", one_of("us", "none"))] = "us"
    tick: Annotated[float | None, _data("price step, or auto: found (default: auto)", or_auto(number(1e6)))] = None
    row_ticks: Annotated[int, _data("height of a profile's row in ticks", whole(1, 10**6))] = 1
    row_origin: Annotated[int, _later("tick at which the rows of a profile are anchored", whole(0, 10**9))] = 0
    allocation: Annotated[
        str,
        _data(
            "a bar's volume: uniform over the rows of its range, at its close, or proportional to its part in each row",
            one_of("uniform", "close", "proportional"),
        ),
    ] = "uniform"
    levels: Annotated[
        str,
        _later(
            "price of a level in its row: centre, low or high, or outer: value area to its outer edges",
            one_of("centre", "low", "high", "outer"),
        ),
    ] = "centre"
    rounding: Annotated[str, _data("a tick's row: floor, nearest or ceil", one_of("floor", "nearest", "ceil"))] = (
        "floor"
    )
    rows: Annotated[str, _data("dense, or occupied: rows without volume do not exist", one_of("dense", "occupied"))] = (
        "dense"
    )
    poc_tie: Annotated[
        str, _data("of equal rows: middle, middle_upper, low or high", one_of("middle", "middle_upper", "low", "high"))
    ] = "middle"
    expansion: Annotated[str, _data("value area grows by one row or by two", one_of("one", "two"))] = "one"
    value_tie: Annotated[str, _data("of equal neighbours: up or down", one_of("up", "down"))] = "up"
    value_area: Annotated[float, _data("share of the volume in the value area", number(1))] = 0.7
    reach: Annotated[
        str, _data("the value area is complete at_least at its share, or with more", one_of("at_least", "more"))
    ] = "at_least"
    workers: Annotated[
        int | None,
        _data(
            "processes that compute features, or auto: one a processor for large files (default: auto)",
            or_auto(whole(1, 256)),
        ),
    ] = None
    cache: Annotated[Path | None, _data("folder that keeps computed features (default: none)", Path)] = None


# What decides features and targets, so that a run cannot go on under another value of it.
DECIDING = tuple(f.name for f in fields(DataConfig) if f.name not in ("chunk_size", "workers", "cache"))
