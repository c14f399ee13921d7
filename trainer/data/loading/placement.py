"""Data placement (device, host, memory-mapped) and transfer of batches, which are the same in each.

On the device they are indexed there: an epoch's order is copied once, and no batch waits for the host. On the host
they are fetched ahead by threads and copied from pinned memory. Mapped, they are a file, of which only what is
indexed is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.data.loading import chunks
from trainer.data.loading.batch import Batch
from trainer.data.loading.prefetch import load
from trainer.data.loading.sampler import Sampler
from trainer.runtime.errors import TrainerError

ROOM = 0.5  # share of the device's free memory that rows may take: weights, activations and graphs need theirs


class Rows(Protocol):
    """Source of batches: rows that are held on a device and found by their numbers."""

    @property
    def device(self) -> torch.device:
        """Where the rows are held."""

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return inputs and targets of the rows with these numbers, on `device`."""


@dataclass(frozen=True, kw_only=True)
class TensorPartition:
    """One part of the data: `inputs` (rows, features), `targets` (rows, 1), scaled, one dtype, on one device."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def device(self) -> torch.device:
        """Where the rows are held."""
        return self.targets.device

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.inputs.nbytes + self.targets.nbytes

    def rows(self, numbers: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of the rows with these numbers, on `device`."""
        if self.targets.device == device:
            here = numbers.to(device)
            return self.inputs.index_select(0, here), self.targets.index_select(0, here)
        found = self.inputs.index_select(0, numbers), self.targets.index_select(0, numbers)
        pinned = (value.pin_memory() if device.type == "cuda" else value for value in found)
        inputs, targets = (value.to(device, non_blocking=True) for value in pinned)
        return inputs, targets


@dataclass(frozen=True, kw_only=True)
class Feed:
    """The chosen placement, the reason, and the number of prefetching threads."""

    name: str
    reason: str
    workers: int = 0


def choose_feed(requested: str, workers: int, *, needs: int, device: torch.device, free: int | None) -> Feed:
    """Return where rows are placed, and why.

    Args:
        requested: value of `--feed`.
        workers: number of threads that fetch ahead; 0 for none.
        needs: size of the rows in bytes.
        device: device that the model is on.
        free: bytes that are free on `device`; None where that is not known.

    Raises:
        TrainerError: RM586 where the rows were to be on a device that has no room for them.
    """
    fits = free is None or needs <= ROOM * free
    size = f"the rows take {needs / 2**20:,.1f} MiB" + ("" if free is None else f" of {free / 2**20:,.0f} MiB free")
    if requested == "auto" and not workers and fits:
        return Feed(name="device", reason=f"auto: {size} on {device}")
    if requested == "auto":
        why = f"--loader-workers {workers}" if workers else size
        return Feed(name="host", reason=f"auto: {why}", workers=max(1, workers))
    if requested == "device" and workers:
        raise TrainerError("RM586", what=f"--feed device has nothing to fetch for --loader-workers {workers}")
    if requested == "device" and not fits:
        raise TrainerError("RM586", what=f"{size} on {device}; at most {ROOM:.0%} may be rows")
    # A CPU indexes mapped rows as it indexes any; a card gets them through a thread that reads ahead.
    least = 0 if requested == "device" or (requested == "mapped" and device.type == "cpu") else 1
    return Feed(name=requested, reason="asked for with --feed", workers=max(least, workers))


def place(
    parts: Iterable[TensorPartition], feed: Feed, device: torch.device, folder: Path | None = None
) -> TensorPartition:
    """Return `parts`, which are on the host and follow each other, where `feed` wants them.

    Args:
        parts: rows on the host; the parts follow each other.
        device: device that the model is on.
        folder: folder for a mapped file; None for the system's temporary one.

    Raises:
        OSError: where a mapped file cannot be written to `folder`.
    """
    if feed.name == "mapped":
        return mapped(parts, folder)
    whole = joined(list(parts))
    if feed.name == "host":
        return whole
    return TensorPartition(inputs=whole.inputs.to(device), targets=whole.targets.to(device))


def joined(parts: Sequence[TensorPartition]) -> TensorPartition:
    """Return the rows of all `parts` in one piece of memory."""
    if len(parts) == 1:
        return parts[0]
    inputs, targets = ([getattr(part, name) for part in parts] for name in ("inputs", "targets"))
    return TensorPartition(inputs=torch.cat(inputs), targets=torch.cat(targets))


def mapped(parts: Iterable[TensorPartition], folder: Path | None = None) -> TensorPartition:
    """Return the rows of `parts` as a file in `folder` that is mapped, and removed when the arrays are freed.

    Raises:
        OSError: where the file cannot be written.
    """
    targets: list[Tensor] = []  # a hundredth of the inputs: they stay in memory until they are all there

    def inputs() -> Iterator[NDArray[Any]]:
        for part in parts:
            targets.append(part.targets)
            yield part.inputs.numpy()

    there = torch.from_numpy(chunks.mapped(inputs(), folder))
    return TensorPartition(
        inputs=there, targets=torch.from_numpy(chunks.mapped([each.numpy() for each in targets], folder))
    )


def batches(
    part: Rows,
    sampler: Sampler,
    *,
    epoch: int,
    start: int,
    rank_slice: Callable[[int], slice],
    device: torch.device,
    workers: int,
) -> Iterator[tuple[Tensor, Any, Any]]:
    """Yield each batch of `epoch` from number `start` on: all its row numbers on the host, this rank's rows.

    Args:
        epoch: number of the epoch, from 0.
        start: number of the first batch, from 0.
        rank_slice: returns this rank's slice of a batch of so many rows.
        device: device that receives the rows.
        workers: number of threads that fetch ahead; with 0 a batch is fetched when it is used.
    """
    if start == sampler.count(epoch):
        return
    size = sampler.size(epoch)
    left = sampler.order(epoch)[start * size :]
    numbers = left.split(size)
    if workers or part.device != device:
        yield from load(numbers, lambda rows: part.rows(rows[rank_slice(len(rows))], device), workers)
        return
    # One copy an epoch: a copy for each batch would make the host wait for all that the device still has to do.
    here = left.to(device).split(size)
    for rows, on_device in zip(numbers, here, strict=True):
        yield rows, *part.rows(on_device[rank_slice(len(rows))], device)
