"""How any table with a target column is read and split: settings beside those of bars."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from trainer.config.data import DataConfig
from trainer.config.parsing import Flag, names, one_of, whole


@dataclass(frozen=True, kw_only=True)
class TableConfig(DataConfig):
    """Settings of tables; each field is the flag of the same name."""

    task: Annotated[
        str,
        Flag(
            "auto: by the target; regression; classification; lm: a language model",
            one_of("auto", "regression", "classification", "lm"),
            "data",
        ),
    ] = "auto"
    time_column: Annotated[
        str, Flag("column that orders a table's rows: auto, none or its name; with one, parts are by time", str, "data")
    ] = "auto"
    categories: Annotated[
        tuple[str, ...], Flag("columns of numbers that are names, such as post codes", names, "data")
    ] = ()
    ignore: Annotated[tuple[str, ...], Flag("columns of a table that are no input", names, "data")] = ()
    identifiers: Annotated[
        str,
        Flag(
            "columns called like an id with another value in every row: leave-out or keep",
            one_of("leave-out", "keep"),
            "data",
            sparse=True,
        ),
    ] = "leave-out"
    missing: Annotated[
        str,
        Flag(
            "a table's missing values: error, drop the row, or fill: training median and a column that says so",
            one_of("error", "drop", "fill"),
            "data",
        ),
    ] = "fill"
    unknown: Annotated[
        str,
        Flag("a category that training never met: zero embedding, or error", one_of("zero", "error"), "data"),
    ] = "zero"
    split_seed: Annotated[int, Flag("seed of a table's split without time", whole(0, 2**32 - 1), "data")] = 0


# What decides rows and inputs of a table, so that a run cannot go on under another value of it.
TABLE_DECIDING = tuple(f.name for f in fields(TableConfig) if f.name not in {g.name for g in fields(DataConfig)})
