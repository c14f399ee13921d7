"""Data made ready to learn from, whatever it was made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.data.bar import Dates
from trainer.data.dataset import Target
from trainer.data.readers.data_file import DataFile
from trainer.data.split import Scaler, Split


@dataclass(frozen=True, kw_only=True)
class Task:
    """Data made ready: `dates` are those used of the file's `file_rows` rows; both scalers know only `split.train`.

    features: name, formula and unit of each column. made: how they were made, for the metadata.
    labels: the classes' names in their order, None for a number. class_weights: by class, None where all weigh the
    same. embeddings: column, values and width of each input that is a code. horizon: bars ahead, None for a table,
    whose `dates` are lines of the file where it has no time column. assumptions: lines for a person.
    split_how: by what the rows were split.
    """

    file: DataFile
    file_rows: int
    dates: Dates
    split: Split
    inputs: Scaler
    targets: Scaler
    target: Target
    features: tuple[dict[str, Any], ...]
    made: dict[str, Any]
    class_weights: list[float] | None = None
    labels: tuple[str, ...] | None = None
    embeddings: tuple[dict[str, int], ...] = ()
    horizon: int | None = None
    assumptions: tuple[str, ...] = ()
    split_how: dict[str, Any] = field(default_factory=lambda: {"by": "time", "seed": None, "stratified": False})

    @property
    def outputs(self) -> int:
        """How many numbers the network gives: one, or one for each class."""
        return len(self.labels) if self.labels else 1


def folder_for(disk: Path | None) -> Path | None:
    """Return the folder for rows that are mapped, made where it is not there; None for the usual one."""
    if disk is not None:
        disk.mkdir(parents=True, exist_ok=True)
    return disk
