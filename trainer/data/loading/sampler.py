"""The order of rows. Its position is two numbers, so any process can resume at any batch of any epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from trainer.config.batch_schedule import CONSTANT, BatchSchedule
from trainer.config.sections.optimizer import LoopConfig


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Each epoch a permutation of `rows` that follows from `seed` and the epoch's number alone.

    Nothing else enters: not the epochs before, not the device, not the ranks, not who loads the rows, and not the size
    of batches, which only decides where the permutation is cut. `batch_size` is that of the epochs before `schedule`
    sets another. Epochs count from 0 here.
    """

    rows: int
    batch_size: int
    seed: int
    schedule: BatchSchedule = CONSTANT

    def size(self, epoch: int) -> int:
        """Return the rows of a whole batch of `epoch`."""
        return self.schedule.rows(epoch + 1, self.batch_size)

    def count(self, epoch: int) -> int:
        """Return the batches of `epoch`; the last may be smaller."""
        return -(-self.rows // self.size(epoch))

    def steps(self, epochs: int) -> int:
        """Return the batches of the first `epochs` epochs together."""
        bounds = [0, *self.schedule.epochs(0, epochs), epochs]
        return sum((after - since) * self.count(since) for since, after in pairwise(bounds))

    def epochs(self, steps: int) -> int:
        """Return how many epochs the first `steps` steps, at least one, begin."""
        low, high = 1, steps  # an epoch has a step or more
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.steps(middle) >= steps else (middle + 1, high)
        return low

    def different(self, since: int, epochs: int) -> list[int]:
        """Return each size that whole batches have from epoch `since` to the end of a run of `epochs`, in order."""
        return list(dict.fromkeys(self.size(epoch) for epoch in (since, *self.schedule.epochs(since, epochs))))

    def sizes(self, epoch: int) -> Tensor:
        """Return the rows of each batch of `epoch`, float64, on the CPU."""
        size, count = self.size(epoch), self.count(epoch)
        sizes = torch.full((count,), size, dtype=torch.float64)
        sizes[-1] = self.rows - size * (count - 1)
        return sizes

    def order(self, epoch: int) -> Tensor:
        """Return the permutation of `epoch`, shape (rows,), int64, on the CPU."""
        return _permutation(self.rows, self.seed, epoch)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """Return the batches of `epoch` from number `start` on, each as many row numbers as its size, or fewer."""
        return iter(self.order(epoch).split(self.size(epoch))[start:])


def steps_of(config: LoopConfig, rows: int) -> int:
    """Return the steps of a whole run on so many rows."""
    sampler = Sampler(rows=rows, batch_size=config.batch_size, seed=config.seed, schedule=config.batch_schedule)
    return sampler.steps(config.epochs) if config.max_steps is None else config.max_steps


@lru_cache(maxsize=1)  # an epoch asks for its order more than once, and no one changes it
def _permutation(rows: int, seed: int, epoch: int) -> Tensor:
    digest = hashlib.blake2b(f"rows {seed} {epoch}".encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest) >> 1)  # 63 bits: no sign
    return torch.randperm(rows, generator=generator)
