"""The rows of a task as a network takes them: scaled, a piece at a time, and laid where the feed wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from trainer.config.train import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import pieces
from trainer.data.loading.placement import Feed, Part, choose_feed, laid
from trainer.device.memory import report
from trainer.tasks.task import Task


def fed(task: Task, config: TrainConfig, *, like: Tensor) -> tuple[Part, Part, Feed]:
    """Return the rows to train and to validate on where they are to lie, in the dtype of `like`, and why there."""
    train, memory = task.split.train, report(like.device)
    feed = choose_feed(
        config.feed,
        config.loader_workers,
        needs=(train.features.size + train.target.size) * like.itemsize,
        device=like.device,
        free=memory.free if memory else None,
    )
    held_out = feed if feed.name == "mapped" else replace(feed, name="device")
    rows, others = (
        laid(scaled(part, task, like.dtype), way, like.device, config.output)
        for part, way in ((train, feed), (task.split.validation, held_out))
    )
    return rows, others, feed


def scaled(part: Dataset, task: Task, dtype: torch.dtype) -> Iterator[Part]:
    """Yield the rows of `part`, scaled, on the host, a piece at a time."""
    for piece in pieces(len(part)):
        targets = task.targets.scale(part.target[piece])[:, np.newaxis]  # (rows, 1)
        yield Part(
            inputs=torch.tensor(task.inputs.scale(part.features[piece]), dtype=dtype),
            targets=torch.tensor(targets, dtype=dtype),
        )
