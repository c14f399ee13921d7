"""Probe `p2p`: copies from card to card keep every bit, both ways; their bandwidth and latency by size.

Also whether another process can open a card's memory, without which NCCL and RCCL go through the host. With fewer
than two cards there is nothing to copy between, and the verdict says so.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search as two_cards
from trainer.diagnostics.probes.pair.ranks import child as in_child
from trainer.diagnostics.probes.pair.ranks import host_facts as circumstances
from trainer.diagnostics.probes.pair.ranks import ipc as card_ipc
from trainer.diagnostics.probes.pair.ranks import torchrun as two_ranks
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, absent, conclude, equal, not_applicable

if TYPE_CHECKING:
    import torch

MODULE = "trainer.diagnostics.probes.pair.p2p"
IPC = "memory opened by another process"
WAYS = (("cuda:0", "cuda:1"), ("cuda:1", "cuda:0"))
SIZES = (4, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28)  # bytes
CHECKED = (4, (1 << 16) + 3, 1 << 24)  # bytes; one that is no multiple of a word
LATENCY_OF = 4  # bytes, so few that the time is that of getting going
ROUNDS = 10


def measure(request: Request) -> Verdict:
    """Copy between the first two cards in a child; where that fails, look for the reason.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    cards = 0 if device.kind == "cpu" else placement.card_count()
    if cards < 2:
        reason = f"Copies from card to card take two cards; here {'is one' if cards else 'is none'}."
        missing = absent(probe="p2p", reason=reason, device=device, versions=placement.versions())
        return two_cards.explained(missing, circumstances.read(cards))
    found = in_child.verdict("p2p", MODULE, request, two_ranks.limit_of(request))
    if found.status == "pass":
        return found
    return two_cards.explained(found, circumstances.read(cards), judge=cause_of(found))


def cause_of(found: Verdict) -> two_cards.Judge:
    """How the cause is judged: by IPC where only that failed, else by what stands between the cards."""
    failed = {check.name: check.detail for check in found.checks if check.status == "fail"}
    if set(failed) != {IPC}:
        return two_cards.of_copies
    wrong = failed[IPC] == card_ipc.OTHER_BYTES
    cause = "card memory shared between processes is read wrongly" if wrong else two_cards.IPC_DENIED
    return lambda tries, facts: (cause, failed[IPC])


def direct(request: Request) -> Verdict:
    """Copy between the first two cards."""
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    return conclude(
        probe="p2p",
        summary=f"Copies between two cards ({device.name}) kept every bit; peer access: {'yes' if peers() else 'no'}.",
        checks=[*(check(way, size, seed) for way in WAYS for size in CHECKED), ipc_check()],
        numbers=[
            Number(name="seed", value=seed, unit=""),
            Number(name="peer access", value=float(peers()), unit="0 or 1"),
            *(number for way in WAYS for size in SIZES for number in figures(way, size)),
            both_ways(),
        ],
        device=device,
        versions=placement.versions(),
    )


def peers() -> bool:
    """Whether the driver lets each of the two cards reach into the other's memory."""
    import torch

    return torch.cuda.can_device_access_peer(0, 1) and torch.cuda.can_device_access_peer(1, 0)


def check(way: tuple[str, str], size: int, seed: int) -> Check:
    """Each card sums its own bytes up; the sums agree."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    host = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
    there = copy(host.to(way[0]), way[1])
    synchronize()
    name = f"{way[0]} to {way[1]} {size} bytes"
    return equal(name, str(numerics.checksum(there)), str(numerics.checksum(host)), "checksum of the bytes")


def copy(source: torch.Tensor, target: str) -> torch.Tensor:
    """A copy of `source` on another card."""
    return source.to(target, copy=True)


def ipc_check() -> Check:
    """Another process can open a card's memory and read it from the other card."""
    if not peers():
        return not_applicable(IPC, "the cards have no peer access")
    refused = card_ipc.error()
    return equal(IPC, refused or "yes", "yes", detail=refused)


def figures(way: tuple[str, str], size: int) -> list[Number]:
    """GB/s of one size, and of the smallest its latency instead."""
    import torch

    source = torch.zeros(size, dtype=torch.uint8, device=way[0])
    target = torch.empty(size, dtype=torch.uint8, device=way[1])
    seconds = best_seconds(lambda: target.copy_(source, non_blocking=True))
    name = f"{way[0]} to {way[1]}"
    if size == LATENCY_OF:
        return [Number(name=f"{name} latency of {size} bytes", value=round(1e6 * seconds, 3), unit="µs")]
    return [Number(name=f"{name} {size} bytes", value=round(size / seconds / 1e9, 3), unit="GB/s")]


def both_ways() -> Number:
    """GB/s of the largest size in both directions at once, both added up."""
    import torch

    size = SIZES[-1]
    blocks = {
        card: [torch.zeros(size, dtype=torch.uint8, device=card) for _ in range(2)] for card in ("cuda:0", "cuda:1")
    }
    streams = {card: torch.cuda.Stream(device=card) for card in blocks}

    def exchange() -> None:
        for here, there in itertools.permutations(blocks):
            with torch.cuda.stream(streams[here]):
                blocks[there][1].copy_(blocks[here][0], non_blocking=True)

    seconds = best_seconds(exchange)
    return Number(name=f"both ways at once {size} bytes", value=round(2 * size / seconds / 1e9, 3), unit="GB/s")


def best_seconds(work: Callable[[], object]) -> float:
    """The least time of a few runs of `work` until both cards are done."""

    def whole() -> None:
        work()
        synchronize()

    return numerics.best_seconds(whole, "cuda", ROUNDS)


def synchronize() -> None:
    """Wait for both cards."""
    import torch

    for card in ("cuda:0", "cuda:1"):
        torch.cuda.synchronize(card)


if __name__ == "__main__":
    sys.exit(in_child.main("p2p", measure, direct))
