"""One rank of the collectives; torchrun starts two of these (see `collectives`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes import numerics
from trainer.diagnostics.probes.pair.ranks import ddp_rank
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD

if TYPE_CHECKING:
    import torch

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28)  # bytes: libraries change protocol in between
SIZES_CPU = (1 << 10, 1 << 16, 1 << 20, 1 << 22)
MODULUS = 251  # a prime, so that the pattern does not repeat with chunks of a power of two
ROUNDS = 5


def phases(rank: int, device: torch.device, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each operation and size the elements that are wrong, and the least time.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the random numbers.
    """
    for operation in OPERATIONS:
        for size in SIZES_CPU if device.type == "cpu" else SIZES:
            found = compare(operation, size // 4, rank, device, seed)
            yield f"{operation} {size} bytes", {"operation": operation, "bytes": size, **found}


def compare(operation: str, count: int, rank: int, device: torch.device, seed: int) -> dict[str, Any]:
    """Return the number of wrong elements of one operation on fp32, and its seconds.

    Args:
        operation: name of the collective.
        count: number of fp32 values.
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the pattern.
    """
    mine = [pattern(count, each, device, seed) for each in range(WORLD)]
    run, right = by_route(OPERATIONS[operation]), RIGHT[operation](mine)
    got = run(mine[rank].clone(), rank)
    wrong = int((got != right).sum()) if got.shape == right.shape else right.numel()
    scratch = mine[rank].clone()
    seconds = numerics.best_seconds(lambda: run(scratch, rank), device.type, ROUNDS)
    return {"wrong": wrong, "seconds": seconds}


def pattern(count: int, rank: int, device: torch.device, seed: int) -> torch.Tensor:
    """Return the whole numbers that a rank holds: they differ between ranks and from place to place.

    Args:
        count: number of fp32 values.
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the pattern.
    """
    import torch

    return (torch.arange(count, device=device) * (rank + 1) + seed % MODULUS).remainder(MODULUS).float() + 1


Operation = Callable[["torch.Tensor", int], "torch.Tensor"]


def by_route(run: Operation) -> Operation:
    """Return `run`, or for the retry its form staged through host memory: gloo sees no card's tensor."""
    if not ddp_rank.through_host():
        return run
    return lambda mine, rank: run(mine.cpu(), rank).to(mine.device)


def all_reduce(mine: torch.Tensor, rank: int) -> torch.Tensor:
    """Return the sum over all ranks."""
    import torch.distributed as dist

    dist.all_reduce(mine)
    return mine


def all_gather(mine: torch.Tensor, rank: int) -> torch.Tensor:
    """Return what all ranks hold, one after the other; each gives its part, so that the result has its size."""
    import torch
    import torch.distributed as dist

    part = mine[: len(mine) // WORLD].contiguous()
    parts = [torch.empty_like(part) for _ in range(WORLD)]
    dist.all_gather(parts, part)
    return torch.cat(parts)


def broadcast(mine: torch.Tensor, rank: int) -> torch.Tensor:
    """Return what the last rank holds."""
    import torch.distributed as dist

    dist.broadcast(mine, src=WORLD - 1)
    return mine


OPERATIONS: dict[str, Operation] = {"all-reduce": all_reduce, "all-gather": all_gather, "broadcast": broadcast}


def _joined(held: list[torch.Tensor]) -> torch.Tensor:
    import torch

    return torch.cat([each[: len(each) // WORLD] for each in held])


RIGHT: dict[str, Callable[[list[torch.Tensor]], torch.Tensor]] = {
    "all-reduce": lambda held: held[0] + held[1],
    "all-gather": _joined,
    "broadcast": lambda held: held[-1],
}


if __name__ == "__main__":
    ddp_rank.leave(ddp_rank.take_part(None, phases), sys.argv)
