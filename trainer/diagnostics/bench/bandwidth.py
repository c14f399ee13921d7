"""Benchmark `bandwidth`: GB/s of a copy within the device's own memory.

What is read and what is written both count, as in STREAM's copy. The blocks are larger than the caches.
"""

from __future__ import annotations

import sys

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Verdict, conclude, equal

ON_CPU, ON_CARD = 1 << 28, 1 << 29  # bytes of the block


def measure(request: Request) -> Verdict:
    """Copy a block over and over.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    import torch

    device = placement.place(request.expect)
    size = ON_CPU if device.kind == "cpu" else ON_CARD
    source = torch.arange(size // 4, device=device.torch_type, dtype=torch.int32)
    target = torch.zeros_like(source)
    taken = timing.samples(lambda: target.copy_(source), device.torch_type, request.seconds)
    name = f"copy {size >> 20} MiB"
    return conclude(
        probe="bandwidth",
        summary=f"Memory read and written {timing.place_text(device)}.",
        checks=[equal(name, numerics.bits_changed(target, source), 0, "wrong words")],
        numbers=timing.rate(name, "GB/s", 2 * size / 1e9, taken),
        device=device,
        versions=placement.versions(),
    )


if __name__ == "__main__":
    sys.exit(entry.main("bandwidth", measure))
