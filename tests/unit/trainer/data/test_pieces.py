"""Rows by pieces: the sums of the whole, and a training in less memory than its rows take. Bars are SYNTHETIC."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainer.data import pieces
from trainer.data.dataset import Dataset
from trainer.data.split import Scaler
from trainer.data.synthetic import write_synthetic
from trainer.scores import baseline_forecasts

LIMIT = 24 * 2**20  # bytes that a training may take beyond what it has when its data are read

# In a process of its own, as a limit cannot be taken back. Rows are few, so that pieces are small, too.
LIMITED = """
import resource, sys
from pathlib import Path
import torch
from trainer import train
from trainer.config import TrainConfig
from trainer.data import pieces
from trainer.data.table import FeatureTable

pieces.PIECE = 2048
data, output, feed, limit = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
torch.set_num_threads(1)
torch.nn.functional.linear(torch.ones(4, 4), torch.ones(4, 4))
lines = Path("/proc/self/status").read_text().splitlines
"""


def rows(count: int) -> Dataset:
    generator = np.random.default_rng(1)
    features = generator.normal(3, 2, (count, 4)).astype(np.float32)
    target = features @ np.array([1.0, -2.0, 0.5, 0.0]) + generator.normal(size=count)
    return Dataset(date=np.arange(count).astype("M8[s]"), features=features, target=target, persistence=target)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 50])
def test_pieces_cover_all_rows_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 8)
    found = list(pieces.pieces(count))
    assert [row for piece in found for row in range(count)[piece]] == list(range(count))
    assert len(found) == max(1, -(-count // 8))


def test_a_mapped_array_is_its_parts(tmp_path: Path) -> None:
    whole = rows(50).features
    found = pieces.mapped((whole[place : place + 7] for place in range(0, 50, 7)), tmp_path)
    assert found.tobytes() == whole.tobytes()
    assert found.dtype == np.float32
    assert list(tmp_path.iterdir()) == []
    assert pieces.mapped([whole[:0]]).shape == (0, 4)


def test_sums_by_pieces_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit in one piece, which is numpy's own sum; to rounding in several."""
    data = rows(1000)
    one, fit = Scaler.fit(data.features), baseline_forecasts(data, data)["linear"]
    assert one.mean.tobytes() == data.features.mean(axis=0, dtype=np.float64).tobytes()
    assert one.std.tobytes() == data.features.std(axis=0, dtype=np.float64).tobytes()
    monkeypatch.setattr(pieces, "PIECE", 64)
    several = Scaler.fit(data.features)
    np.testing.assert_allclose(several.mean, one.mean, rtol=1e-13)
    np.testing.assert_allclose(several.std, one.std, rtol=1e-13)
    np.testing.assert_allclose(baseline_forecasts(data, data)["linear"], fit, rtol=1e-10)
