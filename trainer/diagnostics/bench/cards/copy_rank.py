"""One of the two gloo ranks that stand in for cards in `p2p`: rank 0 sends a message, and rank 1 sends it back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes.pair.ranks import ddp_rank

if TYPE_CHECKING:
    import torch

SIZES_CPU = (4, 1 << 20, 1 << 24)  # bytes
WARM, ROUNDS = 3, 11  # a fixed number: ranks that went by the clock would part


def phases(rank: int, device: torch.device, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each size the bytes that are wrong after a round trip, and the seconds of each.

    Args:
        rank: 0 or 1.
        device: the CPU.
        seed: seed of the random numbers.
    """
    for size in SIZES_CPU:
        yield str(size), returned(size, rank, seed)


def returned(size: int, rank: int, seed: int) -> dict[str, Any]:
    """Send `size` random bytes there and back, time after time.

    Args:
        size: bytes of a message.
        rank: 0 or 1.
        seed: seed of the random bytes.
    """
    import torch
    import torch.distributed as dist

    generator = torch.Generator().manual_seed(seed + size)
    sent = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
    received = torch.zeros_like(sent)

    def round_trip() -> None:
        if rank == 0:
            dist.send(sent, 1)
            dist.recv(received, 1)
        else:
            dist.recv(received, 0)
            dist.send(received, 0)

    taken = [timing.elapsed(round_trip, "cpu", 1) for _ in range(WARM + ROUNDS)]
    return {"wrong": int((received != sent).sum()), "seconds": taken[WARM:]}


if __name__ == "__main__":
    ddp_rank.leave(ddp_rank.take_part(None, phases), sys.argv)
