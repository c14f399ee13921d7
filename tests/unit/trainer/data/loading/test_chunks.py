"""Rows by pieces: the sums of the whole, and a training in less memory than its rows take. Bars are SYNTHETIC."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.baselines import baseline_forecasts
from tests.fixtures.synthetic_bars import write_synthetic
from trainer.cli import main
from trainer.config.sections.bars import BarsConfig
from trainer.data.dataset import Dataset
from trainer.data.features.feature_file import read_table
from trainer.data.loading import chunks
from trainer.data.split import Scaler
from trainer.tasks.bars import finite_rows, table_rows


def rows(count: int) -> Dataset:
    generator = np.random.default_rng(1)
    features = generator.normal(3, 2, (count, 4)).astype(np.float32)
    target = features @ np.array([1.0, -2.0, 0.5, 0.0]) + generator.normal(size=count)
    return Dataset(date=np.arange(count).astype("M8[s]"), features=features, target=target, persistence=target)


pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 50])
def test_pieces_cover_all_rows_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PIECE", 8)
    found = list(chunks.chunks(count))
    assert [row for piece in found for row in range(count)[piece]] == list(range(count))
    assert len(found) == max(1, -(-count // 8))


def test_mapped_array_is_its_parts(tmp_path: Path) -> None:
    whole = rows(50).features
    found = chunks.mapped((whole[place : place + 7] for place in range(0, 50, 7)), tmp_path)
    assert found.tobytes() == whole.tobytes()
    assert found.dtype == np.float32
    assert list(tmp_path.iterdir()) == []
    assert chunks.mapped([whole[:0]]).shape == (0, 4)


def test_sums_by_pieces_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit in one piece, which is numpy's own sum; to rounding in several."""
    data = rows(1000)
    one, fit = Scaler.fit(data.features), baseline_forecasts(data, data)["linear"]
    assert one.mean.tobytes() == data.features.mean(axis=0, dtype=np.float64).tobytes()
    assert one.std.tobytes() == data.features.std(axis=0, dtype=np.float64).tobytes()
    monkeypatch.setattr(chunks, "PIECE", 64)
    several = Scaler.fit(data.features)
    np.testing.assert_allclose(several.mean, one.mean, rtol=1e-13)
    np.testing.assert_allclose(several.std, one.std, rtol=1e-13)
    np.testing.assert_allclose(baseline_forecasts(data, data)["linear"], fit, rtol=1e-10)


@pytest.fixture(scope="module")
def minutes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minutes")
    write_synthetic(folder / "bars.csv", 40_000, seed=2)
    return folder / "bars.csv"


def made(minutes: Path, feed: str) -> tuple[Dataset, Scaler, int]:
    """Return rows and scaler from a feature file, and the peak of numpy's memory on the way."""
    folder = minutes.parent
    config = BarsConfig(data=minutes, features="intraday", horizon=30)
    disk = folder / "runs" if feed == "mapped" else None
    file = folder / "features.arrow"
    if not file.exists():
        assert main(["features", f"--data={minutes}", f"--out={file}"]) == 0
    table = read_table(file)
    tracemalloc.start()
    try:
        found = table_rows(table, finite_rows(table), config, disk)
        return found, Scaler.fit(found.features), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_mapped_rows_are_made_ready_in_less_memory_than_they_take(
    minutes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PIECE", 1024)
    held, scaler, much = made(minutes, "device")
    found, other, little = made(minutes, "mapped")
    size = held.features.nbytes
    assert much > size
    assert little < size / 2
    assert isinstance(found.features, np.memmap)
    assert found.features.tobytes() == held.features.tobytes()
    assert found.target.tobytes() == held.target.tobytes()
    assert (other.mean.tobytes(), other.std.tobytes()) == (scaler.mean.tobytes(), scaler.std.tobytes())


def test_training_on_mapped_rows_is_the_same_to_the_byte(
    minutes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PIECE", 1000)
    flags = ["--features=intraday", "--horizon=30", "--batch-size=512", "--epochs=2", "--device=cpu"]
    for feed in ("device", "mapped"):
        where = [f"--data={minutes}", f"--cache={minutes.parent / 'cache'}", f"--output={tmp_path}", f"--run={feed}"]
        assert main(["train", *where, *flags, f"--feed={feed}"]) == 0
    for name in ("model.safetensors", "metrics.jsonl", "batches.jsonl"):
        assert (tmp_path / "mapped" / name).read_bytes() == (tmp_path / "device" / name).read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["device", "mapped"]
