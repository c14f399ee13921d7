"""The rows of a task as a network takes them: scaled, a piece at a time, and placed as the feed requires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import chunks
from trainer.data.loading.placement import Feed, TensorPartition, choose_feed, place
from trainer.device.memory import report
from trainer.tasks.prepared import Task
from trainer.tasks.task import Placement


def load_partitions(task: Task, placement: Placement) -> tuple[TensorPartition, TensorPartition, Feed]:
    """Return the rows to train and to validate on, held where `placement` wants them, and why there."""
    train, device, dtype = task.split.train, placement.device, placement.dtype
    memory = report(device)
    feed = choose_feed(
        placement.feed,
        placement.workers,
        needs=(train.features.size + train.target.size) * dtype.itemsize,
        device=device,
        free=memory.free if memory else None,
    )
    held_out = feed if feed.name == "mapped" else replace(feed, name="device")
    rows, others = (
        place(scaled(part, task, dtype), way, device, placement.folder)
        for part, way in ((train, feed), (task.split.validation, held_out))
    )
    return rows, others, feed


def scaled(part: Dataset, task: Task, dtype: torch.dtype) -> Iterator[TensorPartition]:
    """Yield the rows of `part`, scaled, on the host, a piece at a time.

    Args:
        dtype: type of inputs and floating targets.
    """
    for piece in chunks(len(part)):
        targets = task.targets.scale(part.target[piece])[:, np.newaxis]  # (rows, 1)
        yield TensorPartition(
            inputs=torch.tensor(task.inputs.scale(part.features[piece]), dtype=dtype),
            targets=torch.tensor(targets, dtype=dtype),
        )
