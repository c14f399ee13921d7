"""Memory held for the patterns: nearly all that is free on a card, a small piece on a CPU, as much as time allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.device import architectures, capacity
from trainer.diagnostics.probes.memory.patterns import PATTERNS, WORD
from trainer.diagnostics.probes.verdict import Device

if TYPE_CHECKING:
    import torch

MIB, GIB = 1 << 20, 1 << 30
PIECE = 64 * MIB  # a pattern is made and compared in pieces of this, in bytes
LARGEST = GIB  # bytes of a block
WORK = 5 * PIECE  # bytes that making and comparing a piece takes at most
SPARE = 512 * MIB  # bytes that stay free on a card: the work, and code that is loaded meanwhile
LEAST_FREE = SPARE + PIECE  # bytes; a card with less has no room for one piece, and none for what measures it
SHARED_SHARE = 0.5  # of the machine's available memory, where the card has none of its own
ON_CPU = 64 * MIB
TRAFFIC = 12  # bytes moved for a byte and pattern: made twice, written, compared


@dataclass(frozen=True, kw_only=True)
class Room:
    """Free memory of a device, and the part to test, in bytes, with the reason where it is not nearly all."""

    free: int
    requested: int
    why: str = ""


def room(device: Device, seconds: float, speed: float) -> Room:
    """Return what to test within a time.

    Args:
        seconds: time for all patterns.
        speed: bytes a second that the device copies, read and written.
    """
    free = free_bytes(device)
    if device.kind == "cpu":
        return Room(free=free, requested=min(ON_CPU, free // 4), why="a CPU's memory is other programs', too")
    nearly_all, in_time = max(0, free - SPARE), int(seconds * speed / (TRAFFIC * len(PATTERNS)))
    if in_time < nearly_all:
        return Room(free=free, requested=max(in_time, PIECE), why=f"more than {seconds:.0f} s would be needed for all")
    return Room(free=free, requested=nearly_all)


def free_bytes(device: Device) -> int:
    """Return the free bytes of the first card or of the machine; of shared memory only a part of what others leave."""
    if device.kind == "cpu":
        return capacity.free_memory("cpu") or ON_CPU
    free = capacity.free_memory("cuda:0") or 0  # None and a full card are alike: no byte is known to be free
    if not shares_memory(device):
        return free
    available = capacity.free_memory("cpu")
    return free if available is None else min(free, int(SHARED_SHARE * available))


def total_bytes() -> int:
    """Return the bytes that the first card has in all."""
    return capacity.card_memory("cuda:0")[1]


def shares_memory(device: Device) -> bool:
    """Return whether a card has no memory of its own, by torch or by its architecture."""
    import torch

    if getattr(torch.cuda.get_device_properties(0), "is_integrated", False):
        return True
    known = architectures.KNOWN.get(device.arch.partition(":")[0])
    return bool(known and known["integrated"])


def hold(device: str, requested: int) -> list[torch.Tensor]:
    """Allocate up to `requested` bytes in blocks, smaller ones where larger ones are refused.

    What the comparison needs is allocated meanwhile and given back, so that it is there afterwards.

    Args:
        device: device of torch.
        requested: bytes.

    Returns:
        blocks of int64, each (n,), of at most LARGEST bytes.
    """
    import torch

    work = torch.empty(WORK if device != "cpu" else 0, dtype=torch.uint8, device=device)
    blocks: list[torch.Tensor] = []
    left, size, least = requested, LARGEST, max(WORD, min(PIECE, requested))
    while left >= least and size >= least:
        size = min(size, left // WORD * WORD)
        try:
            blocks.append(torch.empty(size // WORD, dtype=torch.int64, device=device))
            left -= size
        except torch.cuda.OutOfMemoryError:
            size //= 2
    del work
    return blocks
