"""Benchmark `host_copy`: GB/s to the card and back, from pinned and from pageable memory of the host.

A CPU has no such way, so it is not applicable there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, absent, conclude, equal

BLOCK = 1 << 27  # bytes
MEMORIES = ("pinned", "pageable")
DIRECTIONS = 2


def measure(request: Request) -> Verdict:
    """Copy a block there and back, by each kind of memory.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device, versions = placement.place(request.expect), placement.versions()
    if device.kind == "cpu":
        reason = "Nothing is copied to a CPU; no card was measured."
        return absent(probe="host_copy", reason=reason, device=device, versions=versions)
    checks: list[Check] = []
    numbers: list[Number] = []
    for memory in MEMORIES:
        found = copies(memory, device, request.seconds / (len(MEMORIES) * DIRECTIONS))
        checks, numbers = [*checks, found[0]], [*numbers, *found[1]]
    return conclude(
        probe="host_copy",
        summary=f"Copies of {BLOCK >> 20} MiB between host and card {timing.place_text(device)}.",
        checks=checks,
        numbers=numbers,
        device=device,
        versions=versions,
    )


def copies(memory: str, device: Device, share: float, size: int = BLOCK) -> tuple[Check, list[Number]]:
    """Copy both ways in one kind of memory: what came back is compared with what was sent.

    Args:
        memory: kind of host memory: pinned or pageable.
        share: measuring time in seconds.
        size: bytes of one copy.
    """
    import torch

    pinned = memory == "pinned"
    sent = torch.arange(size // 4, dtype=torch.int32)
    sent = sent.pin_memory() if pinned else sent
    there = torch.zeros(size // 4, dtype=torch.int32, device=device.torch_type)
    back = torch.zeros(size // 4, dtype=torch.int32, pin_memory=pinned)
    copies_by_direction: dict[str, Callable[[], object]] = {
        "to the device": lambda: there.copy_(sent, non_blocking=pinned),
        "back": lambda: back.copy_(there, non_blocking=pinned),
    }
    numbers: list[Number] = []
    for direction, work in copies_by_direction.items():
        taken = timing.samples(work, device.torch_type, share)
        numbers += timing.rate(f"{memory} {direction}", "GB/s", size / 1e9, taken)
    return equal(f"{memory} there and back", numerics.bits_changed(back, sent), 0, "wrong words"), numbers


if __name__ == "__main__":
    sys.exit(entry.main("host_copy", measure))
