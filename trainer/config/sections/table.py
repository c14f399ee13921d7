"""Settings of a table with a target column: how it is read and split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

from trainer.config.choices import IDENTIFIERS, MISSING, UNKNOWN
from trainer.config.parsing import names, one_of, whole
from trainer.config.sections.rows import ReadingConfig, RowsConfig
from trainer.config.setting import Flag, OnResume

_fixed = partial(Flag, recipe="data", resume=OnResume.FIXED)


@dataclass(frozen=True, kw_only=True)
class ColumnsConfig:
    """Settings of a table's columns and their categories."""

    title: ClassVar[str] = "Tables"
    time_column: Annotated[
        str, _fixed("column that orders a table's rows: auto, none or its name; with one, the split is by time")
    ] = "auto"
    categories: Annotated[tuple[str, ...], _fixed("columns of numbers that are names, such as post codes", names)] = ()
    ignore: Annotated[tuple[str, ...], _fixed("columns of a table that are no input", names)] = ()
    identifiers: Annotated[
        str,
        _fixed("columns named like an id, with a different value in every row", one_of(*IDENTIFIERS), sparse=True),
    ] = "leave-out"
    unknown: Annotated[
        str, _fixed("category that the training split lacks; zero: a zero embedding", one_of(*UNKNOWN))
    ] = "zero"


@dataclass(frozen=True, kw_only=True)
class TableConfig(RowsConfig):
    """Settings of tables."""

    title: ClassVar[str] = "Tables"
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    missing: Annotated[
        str,
        _fixed(
            "a table's missing values; fill: training median, with a column that marks them; drop: the row",
            one_of(*MISSING),
        ),
    ] = "fill"
    split_seed: Annotated[int, _fixed("seed of a table's split without time", whole(0, 2**32 - 1))] = 0
    reading: ReadingConfig = field(default_factory=ReadingConfig)
