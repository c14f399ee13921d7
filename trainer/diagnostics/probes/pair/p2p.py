"""Probe `p2p`: copies from card to card keep every bit, both ways; their bandwidth and latency by size.

Also whether another process can open a card's memory, without which NCCL and RCCL go through the host. With fewer than
two cards there is nothing to copy between, and the verdict states it. With more, one pair after the other is tried,
until each card was in one: not every card with every other.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, child, host_facts, ipc, torchrun
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, absent, conclude, equal, not_applicable

if TYPE_CHECKING:
    import torch

MODULE = "trainer.diagnostics.probes.pair.p2p"
IPC = "memory opened by another process"
SIZES = (4, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28)  # bytes
CHECKED = (4, (1 << 16) + 3, 1 << 24)  # bytes; one that is no multiple of a word
LATENCY_OF = 4  # bytes, so few that the time is that of getting going
ROUNDS = 10


def measure(request: Request) -> Verdict:
    """Copy between two cards after the other in a child; where that fails, look for the reason.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    cards = 0 if device.kind == "cpu" else placement.card_count()
    if cards < 2:
        reason = f"Copies from card to card take two cards; here {'is one' if cards else 'is none'}."
        missing = absent(probe="p2p", reason=reason, device=device, versions=placement.versions())
        return cause_search.explained(missing, host_facts.read(cards))
    found = child.verdict("p2p", MODULE, request, torchrun.limit_of(request))
    if found.status == "pass":
        return found
    return cause_search.explained(found, host_facts.read(cards), judge=cause_of(found))


def cause_of(found: Verdict) -> cause_search.Judge:
    """Return how the cause is judged: by IPC where only that failed, else by what stands between the cards."""
    failed = {check.name: check.detail for check in found.checks if check.status == "fail"}
    if not failed or not all(name.endswith(IPC) for name in failed):
        return cause_search.of_copies
    reason = next(iter(failed.values()))
    wrong = reason == ipc.OTHER_BYTES
    cause = "card memory shared between processes is read wrongly" if wrong else cause_search.IPC_DENIED
    return lambda tries, facts: (cause, reason)


def direct(request: Request) -> Verdict:
    """Copy between two cards after the other, each card in one pair."""
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    pairs, present = torchrun.pairs(placement.card_count()), placement.card_ids()
    reach = all(peers(pair) for pair in pairs)
    outcome = f"kept every bit{torchrun.tried(pairs)}; peer access: {'yes' if reach else 'no'}"
    found = conclude(
        probe="p2p",
        summary=f"Copies between two cards ({device.name}) {outcome}.",
        checks=[one for pair in pairs for one in checks(pair, seed)],
        numbers=[Number(name="seed", value=seed, unit=""), *(one for pair in pairs for one in numbers(pair))],
        device=device,
        versions=placement.versions(),
    )
    return dataclasses.replace(found, cards=present, present=present)


def directions(pair: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return both directions between two cards, as torch names these."""
    here, there = (f"cuda:{card}" for card in pair)
    return (here, there), (there, here)


def checks(pair: Sequence[int], seed: int) -> list[Check]:
    """Check the copies of one pair both ways, and its memory in another process."""
    return [*(check(direction, size, seed) for direction in directions(pair) for size in CHECKED), ipc_check(pair)]


def numbers(pair: Sequence[int]) -> list[Number]:
    """Return what was measured on one pair."""
    measured = [number for direction in directions(pair) for size in SIZES for number in figures(direction, size)]
    peer = Number(name=f"{torchrun.named(pair)}peer access", value=float(peers(pair)), unit="0 or 1")
    return [peer, *measured, bidirectional(pair)]


def peers(pair: Sequence[int]) -> bool:
    """Return whether the driver lets each of the two cards reach into the other's memory."""
    import torch

    return all(torch.cuda.can_device_access_peer(here, there) for here, there in itertools.permutations(pair))


def check(direction: tuple[str, str], size: int, seed: int) -> Check:
    """Check that the sums that each card makes of its own bytes agree.

    Args:
        direction: source and destination, as torch names them.
        size: bytes to copy.
        seed: seed of the random bytes.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    host = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
    there = copy(host.to(direction[0]), direction[1])
    synchronize(direction)
    name = f"{direction[0]} to {direction[1]} {size} bytes"
    return equal(name, str(numerics.checksum(there)), str(numerics.checksum(host)), "checksum of the bytes")


def copy(source: torch.Tensor, target: str) -> torch.Tensor:
    """Return a copy of `source` on another card."""
    return source.to(target, copy=True)


def ipc_check(pair: Sequence[int]) -> Check:
    """Check that another process can open a card's memory and read it from the other card."""
    name = f"{torchrun.named(pair)}{IPC}"
    if not peers(pair):
        return not_applicable(name, "the cards have no peer access")
    refused = ipc.error(pair=pair)
    return equal(name, refused or "yes", "yes", detail=refused)


def figures(direction: tuple[str, str], size: int) -> list[Number]:
    """Return GB/s of one size, and of the smallest its latency instead."""
    import torch

    source = torch.zeros(size, dtype=torch.uint8, device=direction[0])
    target = torch.empty(size, dtype=torch.uint8, device=direction[1])
    seconds = best_seconds(lambda: target.copy_(source, non_blocking=True), direction)
    name = f"{direction[0]} to {direction[1]}"
    if size == LATENCY_OF:
        return [Number(name=f"{name} latency of {size} bytes", value=round(1e6 * seconds, 3), unit="µs")]
    return [Number(name=f"{name} {size} bytes", value=round(size / seconds / 1e9, 3), unit="GB/s")]


def bidirectional(pair: Sequence[int]) -> Number:
    """Return GB/s of the largest size in both directions at once, both added up."""
    import torch

    size, cards = SIZES[-1], directions(pair)[0]
    blocks = {card: [torch.zeros(size, dtype=torch.uint8, device=card) for _ in range(2)] for card in cards}
    streams = {card: torch.cuda.Stream(device=card) for card in blocks}

    def exchange() -> None:
        for here, there in itertools.permutations(blocks):
            with torch.cuda.stream(streams[here]):
                blocks[there][1].copy_(blocks[here][0], non_blocking=True)

    seconds = best_seconds(exchange, cards)
    return Number(
        name=f"{torchrun.named(pair)}both ways at once {size} bytes",
        value=round(2 * size / seconds / 1e9, 3),
        unit="GB/s",
    )


def best_seconds(work: Callable[[], object], cards: Sequence[str]) -> float:
    """Return the least time of a few runs of `work` until both cards are done."""

    def whole() -> None:
        work()
        synchronize(cards)

    return numerics.best_seconds(whole, "cuda", ROUNDS)


def synchronize(cards: Sequence[str]) -> None:
    """Wait for both cards."""
    import torch

    for card in cards:
        torch.cuda.synchronize(card)


if __name__ == "__main__":
    sys.exit(child.main("p2p", measure, direct))
