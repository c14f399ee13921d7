"""Bandwidth of a card's memory: read, write and copy, next to the figure of the card's maker.

The best of many samples counts, as a shared or a slowly waking card is not a sick one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from trainer.device import architectures, capacity
from trainer.diagnostics.probes import numerics
from trainer.diagnostics.probes.verdict import Check, Device, Number, at_least, not_applicable
from trainer.telemetry import peaks

ON_CPU, ON_CARD = 1 << 27, 1 << 30  # bytes of a buffer; a card's is a multiple of any cache
PART = 8  # of what is free, at most, for each of two buffers
CPU_SECONDS, CARD_SECONDS = 0.1, 0.6  # for each kind of access; clocks take some tenths of a second to rise
CALLS = 4  # queued at a time
# Least shares of the maker's figure. Sound cards write and copy at about 75 to 90 % of it; torch's reductions, which
# measure reading, reach less of it on some. No AMD card was measured by this project.
LEAST = {"read": 0.4, "write": 0.5, "copy": 0.5}
NVIDIA = {"sm_80": {"A100-SXM4-40GB": 1555.0, "A100-SXM4-80GB": 2039.0}, "sm_90": {"H200": 4800.0}}  # data sheets
Speeds = Mapping[str, float]  # GB/s (1e9 bytes) of read, write and copy


def measure(device: Device) -> dict[str, float]:
    """Return GB/s of reading, writing and copying; a copy counts what it reads and what it writes."""
    import torch

    size, seconds = ON_CPU, CPU_SECONDS
    if device.kind != "cpu":
        free = capacity.free_memory("cuda:0")
        size, seconds = ON_CARD if free is None else min(ON_CARD, free // PART), CARD_SECONDS
    source, target = (torch.ones(size // 4, device=device.torch_type) for _ in range(2))
    reads = [fastest(work, device.torch_type, seconds / 2) for work in (source.sum, source.amax)]
    writes = fastest(lambda: target.fill_(2.0), device.torch_type, seconds)
    copies = fastest(lambda: target.copy_(source), device.torch_type, seconds)
    moved = source.numel() * 4 / 1e9
    return {"read": moved / min(reads), "write": moved / writes, "copy": 2 * moved / copies}


def fastest(work: Callable[[], object], torch_type: str, seconds: float) -> float:
    """Return the least seconds of one call of `work`, of samples over some time; at least two are taken.

    Args:
        work: what is timed.
        torch_type: device type of torch, "cuda" or "cpu".
        seconds: how long samples are taken.
    """
    numerics.wait_for(torch_type)
    taken: list[float] = []
    ends = time.perf_counter() + seconds
    while len(taken) < 2 or time.perf_counter() < ends:
        began = time.perf_counter()
        for _ in range(CALLS):
            work()
        numerics.wait_for(torch_type)
        taken.append(max(time.perf_counter() - began, 1e-9) / CALLS)
    return min(taken)


def stated(name: str, arch: str) -> float | None:
    """Return the maker's GB/s of a card as torch names it; None for one unknown, or where the names fit unlike cards.

    Args:
        name: name of the card, such as "AMD Instinct MI60 / MI50", which both have the same memory.
        arch: architecture, such as "gfx906:sramecc+:xnack-".
    """
    plain = arch.partition(":")[0]
    known = architectures.KNOWN.get(plain)
    table = known["memory_bandwidth"] if known else NVIDIA.get(plain, {})
    figures = {float(table[word]) for word in peaks.longest(name, table)}
    return figures.pop() if len(figures) == 1 else None


def share_of_card(device: Device, units: int) -> float:
    """Return which part of a card's compute units a device has: an eighth where an MI300X is partitioned (CPX).

    A partition reaches the memory through its own units alone. RDNA is left out: torch counts pairs of units there.

    Args:
        units: compute units that torch reports.
    """
    whole = peaks.find(device.name, device.arch.partition(":")[0])
    if device.kind != "rocm" or whole is None or not device.arch.startswith("gfx9"):
        return 1.0
    return min(1.0, units / whole.units)


def checks(device: Device, speeds: Speeds, units: int = 0) -> list[Check]:
    """Compare the speeds with the card's figure; without one, and on a CPU, they are for the record.

    Args:
        speeds: GB/s by kind of access.
        units: compute units that torch reports of the card.
    """
    figure = stated(device.name, device.arch)
    if device.kind == "cpu":
        return [not_applicable("bandwidth", "a CPU has other work, too")]
    if figure is None:
        return [not_applicable("bandwidth", f"no figure of {device.name!r} is known to compare with")]
    part = share_of_card(device, units)
    detail = f"the card's figure is {figure:g} GB/s" + (f", this is {part:.3g} of the card" if part < 1 else "")
    return [at_least(f"{kind} bandwidth", speeds[kind], LEAST[kind] * figure * part, "GB/s", detail) for kind in LEAST]


def numbers(speeds: Speeds) -> list[Number]:
    """Return the speeds for the record."""
    return [
        Number(name=f"{kind} bandwidth", value=float(f"{speed:.4g}"), unit="GB/s") for kind, speed in speeds.items()
    ]
