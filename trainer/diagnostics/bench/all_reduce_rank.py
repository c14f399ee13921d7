"""One rank of the sum; torchrun starts two of these (see `all_reduce`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes.pair.ranks import ddp_rank
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD

if TYPE_CHECKING:
    import torch

SIZES = (1 << 20, 1 << 26, 1 << 28)  # bytes
SIZES_CPU = (1 << 20, 1 << 24)
WARM, ROUNDS = 3, 11  # a fixed number: ranks that went by the clock would part


def phases(rank: int, device: torch.device, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each size the elements that are wrong, and the seconds of each round.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the random numbers.
    """
    for size in SIZES_CPU if device.type == "cpu" else SIZES:
        yield f"{size >> 20} MiB", {"bytes": size, **summed(size // 4, rank, device)}


def summed(count: int, rank: int, device: torch.device) -> dict[str, Any]:
    """Add up `count` fp32 over the ranks: whether the first sum is right, and the seconds of later ones.

    Args:
        count: number of fp32 values.
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
    """
    import torch
    import torch.distributed as dist

    mine = torch.full((count,), float(rank + 1), device=device)
    dist.all_reduce(mine)
    wrong = int((mine != WORLD * (WORLD + 1) / 2).sum())
    mine.zero_()  # a sum of sums would grow without end
    taken = [timing.elapsed(lambda: dist.all_reduce(mine), device.type, 1) for _ in range(WARM + ROUNDS)]
    return {"wrong": wrong, "seconds": taken[WARM:]}


if __name__ == "__main__":
    ddp_rank.leave(ddp_rank.take_part(None, phases), sys.argv)
