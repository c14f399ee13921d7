"""Probe `transfer`: copies to the card and back keep every bit, also in a training-like loop with workers.

Pinned and pageable, contiguous and strided, both directions. Each side sums its bytes up on its own device, so that
a copy is not judged by another copy. On a CPU the copies stay in host memory, and the verdict states it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, equal, not_applicable

if TYPE_CHECKING:
    import torch

KINDS = tuple((memory, layout) for memory in ("pageable", "pinned") for layout in ("contiguous", "strided"))
WORKERS = 2
ROW = 1 << 14  # bytes


@dataclass(frozen=True, kw_only=True)
class Load:
    """Amount to copy: bytes of one copy (a multiple of ROW), and batches of the loop with their bytes."""

    copy_bytes: int
    batches: int
    batch_bytes: int


ON_CARD = Load(copy_bytes=1 << 26, batches=96, batch_bytes=1 << 23)
ON_CPU = Load(copy_bytes=1 << 22, batches=16, batch_bytes=1 << 18)


def measure(request: Request) -> Verdict:
    """Copy by each kind, then train-like: workers draw, the loop copies while the card computes.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    load, seed = (ON_CPU if device.kind == "cpu" else ON_CARD), numerics.fresh_seed()
    checks: list[Check] = []
    numbers = [Number(name="seed", value=seed, unit="")]
    for memory, layout in KINDS:
        if memory == "pinned" and device.kind == "cpu":
            checks.append(not_applicable(f"{memory} {layout}", "pinned memory is for a card, and there is none"))
            continue
        more = copies(memory, layout, device, load, seed)
        checks, numbers = [*checks, *more[0]], [*numbers, *more[1]]
    wrong = loop(device, load, seed)
    checks += [at_most("loop with workers", wrong, 0, f"wrong of {load.batches} batches")]
    return conclude(
        probe="transfer",
        summary=summarise(device, load),
        checks=checks,
        numbers=numbers,
        device=device,
        versions=placement.versions(),
    )


def summarise(device: Device, load: Load) -> str:
    """Return one sentence on what was copied."""
    if device.kind == "cpu":
        return f"Copies within host memory kept every bit, {load.batches} batches of workers too; no card was tried."
    return f"Copies to and from {device.name} kept every bit, {load.batches} batches of {WORKERS} workers too."


def copies(memory: str, layout: str, device: Device, load: Load, seed: int) -> tuple[list[Check], list[Number]]:
    """Copy one block there and back; each side's checksum, and GB/s both ways.

    Args:
        memory: kind of host memory: pinned or pageable.
        layout: contiguous or strided.
        seed: seed of the random bytes.
    """
    host = laid_out(block(load.copy_bytes, seed), layout, pinned=memory == "pinned")
    sent = numerics.checksum(host)
    there = copy(host, device.torch_type)
    back = copy(laid_out_on_device(there, layout), "cpu")
    numerics.wait_for(device.torch_type)
    name = f"{memory} {layout}"
    checks = [
        equal(f"{name} to the device", str(numerics.checksum(there)), str(sent), "checksum of the bytes"),
        at_most(f"{name} and back", int((back.view(-1) != host.reshape(-1)).sum()), 0, "wrong bytes"),
    ]
    return checks, speeds(name, host, there, layout, device)


def speeds(name: str, host: torch.Tensor, there: torch.Tensor, layout: str, device: Device) -> list[Number]:
    """Return GB/s of both directions.

    Args:
        name: name of the numbers.
        host: rows on the host.
        there: the same rows on the device.
        layout: contiguous or strided.
    """
    source = laid_out_on_device(there, layout)
    copies_by_direction: dict[str, Callable[[], object]] = {
        "to the device": lambda: copy(host, device.torch_type),
        "back": lambda: copy(source, "cpu", pinned=host.is_pinned()),
    }
    gigabytes = host.numel() / 1e9
    return [
        Number(
            name=f"{name} {direction}",
            value=round(gigabytes / numerics.best_seconds(work, device.torch_type, rounds=3), 3),
            unit="GB/s",
        )
        for direction, work in copies_by_direction.items()
    ]


def block(size: int, seed: int) -> torch.Tensor:
    """Return random bytes as rows of ROW."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(-(1 << 63), (1 << 63) - 1, (size // 8,), generator=generator, dtype=torch.int64)
    return words.view(torch.uint8).view(-1, ROW)


def laid_out(rows: torch.Tensor, layout: str, *, pinned: bool) -> torch.Tensor:
    """Return the same rows in memory that is pinned or not; strided: every other half of rows twice as long.

    Args:
        rows: contiguous rows on the host.
        layout: contiguous or strided.
        pinned: use pinned memory.
    """
    import torch

    if layout == "contiguous":
        return rows.pin_memory() if pinned else rows
    wide = torch.empty(rows.shape[0], 2 * ROW, dtype=rows.dtype, pin_memory=pinned)
    wide[:, :ROW] = rows
    return wide[:, :ROW]


def laid_out_on_device(rows: torch.Tensor, layout: str) -> torch.Tensor:
    """Return the same rows, on their device, in one piece or not."""
    import torch

    return rows if layout == "contiguous" else torch.cat([rows, rows], dim=1)[:, :ROW]


def copy(rows: torch.Tensor, target: str, *, pinned: bool = False) -> torch.Tensor:
    """Copy `rows` to `target` into memory of its own; without waiting where the source is pinned.

    Args:
        rows: tensor to copy.
        target: device that receives it.
        pinned: the host's side is pinned.
    """
    import torch

    if target == "cpu":
        return torch.empty(rows.shape, dtype=rows.dtype, pin_memory=pinned).copy_(rows)
    return rows.to(target, copy=True, non_blocking=rows.is_pinned())


class Batches:
    """A dataset whose item is random words and their checksum, made by a worker."""

    def __init__(self, load: Load, seed: int) -> None:
        self.load, self.seed = load, seed

    def __len__(self) -> int:
        return self.load.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, str]:
        words = block(self.load.batch_bytes, self.seed + 7919 * (index + 1))
        return words, str(numerics.checksum(words))


def loop(device: Device, load: Load, seed: int) -> int:
    """Return how many batches differ on the device from what the worker drew; the card computes meanwhile.

    Args:
        seed: seed of the random bytes.
    """
    wrong, busy = 0, Busy(device)
    for words, expected in loader(device, load, seed):
        there = copy(words, device.torch_type)
        busy.compute()
        wrong += str(numerics.checksum(there)) != expected
    return wrong


def loader(device: Device, load: Load, seed: int) -> Iterator[tuple[torch.Tensor, str]]:
    """Yield batches from workers, pinned where there is a card.

    Args:
        seed: seed of the random bytes.
    """
    from torch.utils.data import DataLoader

    batches: Any = Batches(load, seed)
    made: DataLoader[Any] = DataLoader(
        batches, batch_size=None, num_workers=WORKERS, pin_memory=device.kind != "cpu", prefetch_factor=4
    )
    yield from made


class Busy:
    """Something for the device to compute while batches come, on a stream of its own where there are streams."""

    def __init__(self, device: Device) -> None:
        import torch

        size = 64 if device.kind == "cpu" else 2048
        self.matrix = torch.randn(size, size, device=device.torch_type)
        self.stream = None if device.kind == "cpu" else torch.cuda.Stream()

    def compute(self) -> None:
        """Start a product."""
        import torch

        with torch.cuda.stream(self.stream):
            self.matrix @ self.matrix


if __name__ == "__main__":
    sys.exit(entry.main("transfer", measure))
