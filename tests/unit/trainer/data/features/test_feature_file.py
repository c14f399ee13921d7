"""Feature files next to their metadata: never new features with metadata of earlier ones."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from trainer.data.features.feature_file import metadata_path, read_record, write_table
from trainer.data.features.intraday import Rows
from trainer.runtime.errors import TrainerError


def rows() -> Generator[Rows, None, None]:
    yield Rows(
        date=np.arange(3).astype("M8[s]"),
        session=np.zeros(3, np.int64),
        close=np.ones(3),
        features=np.zeros((3, 1)),
    )


def test_earlier_features_and_metadata_stay_where_new_ones_could_not_be_made(tmp_path: Path) -> None:
    write_table(tmp_path / "f.arrow", rows(), ("one",), lambda: {"key": "first"})

    def full() -> dict[str, str]:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError):
        write_table(tmp_path / "f.arrow", rows(), ("one",), full)
    assert read_record(tmp_path / "f.arrow")["key"] == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.arrow", "f.arrow.json"]


def test_features_are_in_place_before_their_metadata_and_never_with_earlier_ones(tmp_path: Path, monkeypatch) -> None:
    write_table(tmp_path / "f.arrow", rows(), ("one",), lambda: {"key": "first"})
    moved, rename = [], Path.rename

    def stopped(path: Path, target: Path) -> Path:
        moved.append(target.name)
        if target == metadata_path(tmp_path / "f.arrow"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(OSError):
        write_table(tmp_path / "f.arrow", rows(), ("one",), lambda: {"key": "second"})
    assert moved == ["f.arrow", "f.arrow.json"]
    with pytest.raises(TrainerError, match="missing"):
        read_record(tmp_path / "f.arrow")
