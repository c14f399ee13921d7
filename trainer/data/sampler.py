"""The order of rows. Where it stands is two numbers, so any process can go on from any batch of any epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Each epoch a permutation of `rows` that follows from `seed` and the epoch's number alone.

    Nothing else enters: not the epochs before, not the device, not the ranks, not who loads the rows.
    """

    rows: int
    batch_size: int
    seed: int

    def __len__(self) -> int:
        """Return the batches of an epoch; the last may be smaller."""
        return (self.rows + self.batch_size - 1) // self.batch_size

    def sizes(self) -> Tensor:
        """Return the rows of each batch of an epoch, float64, on the CPU."""
        sizes = torch.full((len(self),), self.batch_size, dtype=torch.float64)
        sizes[-1] = self.rows - self.batch_size * (len(self) - 1)
        return sizes

    def order(self, epoch: int) -> Tensor:
        """Return the permutation of `epoch`, shape (rows,), int64, on the CPU."""
        return _permutation(self.rows, self.seed, epoch)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """Return the batches of `epoch` from number `start` on, each (batch_size,) or fewer row numbers."""
        return iter(self.order(epoch).split(self.batch_size)[start:])


@lru_cache(maxsize=1)  # an epoch asks for its order more than once, and no one changes it
def _permutation(rows: int, seed: int, epoch: int) -> Tensor:
    digest = hashlib.blake2b(f"rows {seed} {epoch}".encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest) >> 1)  # 63 bits: no sign
    return torch.randperm(rows, generator=generator)
