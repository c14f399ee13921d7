"""Rows as a network takes them: scaled by the training part, in one dtype, held where the feed wants them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import PIECE
from trainer.data.loading.placement import Feed, TensorPartition
from trainer.data.split import Scaler, Split
from trainer.tasks import scaling


def rows(first: int, count: int) -> Dataset:
    numbers = np.arange(first, first + count, dtype=float)
    date = np.datetime64("2020-01-01T00:00:00") + np.arange(count) * np.timedelta64(1, "s")
    return Dataset(date=date, features=np.stack([numbers, -numbers], axis=1), target=numbers, persistence=numbers)


def task(train: int = 6) -> Any:
    split = Split(train=rows(0, train), validation=rows(100, 4), test=rows(200, 2), embargo=0)
    inputs = Scaler(mean=np.array([1.0, 2.0]), std=np.array([2.0, 4.0]))
    return SimpleNamespace(split=split, inputs=inputs, targets=Scaler(mean=np.array(3.0), std=np.array(0.5)))


def placement(feed: str, folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    return SimpleNamespace(
        feed=feed, workers=0 if feed == "device" else 2, device=torch.device("cpu"), dtype=dtype, folder=folder
    )


def check(part: TensorPartition, first: int, count: int) -> None:
    numbers = torch.arange(first, first + count, dtype=part.inputs.dtype)
    assert torch.equal(part.inputs, torch.stack([(numbers - 1) / 2, (-numbers - 2) / 4], dim=1))
    assert torch.equal(part.targets, ((numbers - 3) / 0.5)[:, None])


@pytest.mark.parametrize("feed", ["device", "host", "mapped"])
def test_training_and_validation_rows_are_scaled_alike_whatever_holds_them(feed: str, tmp_path: Path) -> None:
    train, validation, way = scaling.load_partitions(task(), placement(feed, tmp_path))
    assert (way.name, train.inputs.dtype, train.targets.dtype) == (feed, torch.float32, torch.float32)
    check(train, 0, 6)
    check(validation, 100, 4)


@pytest.mark.parametrize("free", [None, 1000])
def test_feed_is_chosen_by_the_bytes_of_the_training_rows_and_the_free_memory(
    free: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: dict[str, Any] = {}

    def choose(feed: str, workers: int, **more: Any) -> Feed:
        requested.update(more, feed=feed, workers=workers)
        return Feed(name="device", reason="for the test")

    monkeypatch.setattr(scaling, "choose_feed", choose)
    monkeypatch.setattr(scaling, "report", lambda device: free and SimpleNamespace(free=free, of=device))
    scaling.load_partitions(task(), placement("auto", tmp_path, torch.float32))
    cpu = torch.device("cpu")
    assert requested == {"feed": "auto", "workers": 2, "needs": 6 * 3 * 4, "device": cpu, "free": free}


@pytest.mark.parametrize(("feed", "held_out"), [("device", "device"), ("host", "device"), ("mapped", "mapped")])
def test_validation_rows_are_held_on_the_device_unless_all_are_mapped(
    feed: str, held_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, torch.device, Path]] = []
    monkeypatch.setattr(scaling, "place", lambda parts, way, device, folder: made.append((way.name, device, folder)))
    scaling.load_partitions(task(), placement(feed, tmp_path))
    cpu = torch.device("cpu")
    assert made == [(feed, cpu, tmp_path), (held_out, cpu, tmp_path)]


def test_rows_are_scaled_a_piece_at_a_time() -> None:
    found = list(scaling.scaled(rows(0, PIECE + 5), task(), torch.float32))
    assert [len(part) for part in found] == [PIECE, 5]
    assert {(part.inputs.dtype, part.targets.dtype) for part in found} == {(torch.float32, torch.float32)}
    assert found[1].inputs.shape == (5, 2)
    assert found[1].targets[0, 0].item() == (PIECE - 3) / 0.5
