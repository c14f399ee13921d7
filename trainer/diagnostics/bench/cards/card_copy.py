"""Benchmark `p2p`: GB/s and latency of copies between all pairs of cards, each direction and both at once.

For each pair it states whether the driver gives peer access; without it a copy goes through the host's memory. One
buffer of each pair and direction is compared by checksum. On a CPU two gloo ranks stand in for the cards: what they
measure is the loopback interface.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trainer.diagnostics.bench import timing
from trainer.diagnostics.bench.cards.copy_rank import ROUNDS, SIZES_CPU
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair import p2p
from trainer.diagnostics.probes.pair.ranks import torchrun
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD
from trainer.diagnostics.probes.pair.ranks.torchrun import Phases, Report
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, absent, at_most, conclude

if TYPE_CHECKING:
    import torch

RANK_MODULE = "trainer.diagnostics.bench.cards.copy_rank"
SIZES = (1 << 16, 1 << 20, 1 << 26, 1 << 28)  # bytes
LATENCY_OF = 4  # bytes
CHECKED = (1 << 24) + 3  # bytes; no multiple of a word


def measure(request: Request) -> Verdict:
    """Copy between all pairs of cards, or between two ranks on the CPU.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    if device.kind == "cpu":
        return between_ranks(device, request)
    cards = placement.card_count()
    if cards < WORLD:
        reason = "One card is here, and copies from card to card take two; nothing was measured."
        return absent(probe="p2p", reason=reason, device=device, versions=placement.versions())
    return between_cards(device, cards, request)


def between_cards(device: Device, cards: int, request: Request) -> Verdict:
    """Measure copies of all pairs.

    Args:
        cards: number of cards.
    """
    pairs = list(itertools.combinations(range(cards), 2))
    share = request.seconds / (len(pairs) * (2 * (len(SIZES) + 1) + 1))
    reach = [p2p.peers(pair) for pair in pairs]
    seed = numerics.fresh_seed()
    return conclude(
        probe="p2p",
        summary=f"{len(pairs)} pair(s) of {cards} cards ({device.name}): {routes(pairs, reach)}.",
        checks=[p2p.check(way, CHECKED, seed) for pair in pairs for way in p2p.directions(pair)],
        numbers=[number for pair in pairs for number in figures(pair, device, share)],
        device=device,
        versions=placement.versions(),
    )


def routes(pairs: Sequence[tuple[int, int]], reach: Sequence[bool]) -> str:
    """Return how the pairs copy, as a sentence.

    Args:
        pairs: numbers of two cards each.
        reach: whether the driver gives a pair peer access.
    """
    if all(reach):
        return "all have peer access"
    without = [f"{first} and {second}" for (first, second), peer in zip(pairs, reach, strict=True) if not peer]
    return f"without peer access, so through the host's memory: cards {', '.join(without)}"


def figures(pair: tuple[int, int], device: Device, share: float) -> list[Number]:
    """Return peer access of one pair, latency and bandwidth of each direction, and of both at once.

    Args:
        pair: numbers of two cards.
        share: measuring time of each figure in seconds.
    """
    here, there = p2p.directions(pair)
    numbers = [Number(name=f"{here[0]} and {here[1]}: peer access", value=float(p2p.peers(pair)), unit="0 or 1")]
    for source, target in (here, there):
        name = f"{source} to {target}"
        for size in (LATENCY_OF, *SIZES):
            taken = timing.samples(copies(source, target, size), device.torch_type, share)
            numbers += figure(name, size, taken)
    taken = timing.samples(exchange_of(here), device.torch_type, share)
    both = f"{here[0]} and {here[1]}: both ways at once {size_text(SIZES[-1])}"
    return [*numbers, *timing.rate(both, "GB/s", 2 * SIZES[-1] / 1e9, taken)]


def figure(name: str, size: int, taken: Sequence[float]) -> list[Number]:
    """Return GB/s of a copy, or of the smallest its latency.

    Args:
        name: name of the direction.
        size: bytes of a copy.
        taken: seconds of each sample.
    """
    if size == LATENCY_OF:
        latency = timing.milliseconds(f"{name} latency of {size} bytes", taken)
        return [Number(name=latency[0].name, value=timing.rounded(1e3 * latency[0].value), unit="µs"), latency[1]]
    return timing.rate(f"{name} {size_text(size)}", "GB/s", size / 1e9, taken)


def size_text(size: int) -> str:
    """Return a number of bytes as KiB or MiB."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def copies(source: str, target: str, size: int) -> Callable[[], object]:
    """Return a function that copies `size` bytes from one card to another, done when it returns.

    Args:
        source: torch's name of the card that is read.
        target: torch's name of the card that is written.
        size: bytes.
    """
    import torch

    sent = torch.zeros(size, dtype=torch.uint8, device=source)
    received = torch.empty(size, dtype=torch.uint8, device=target)

    def copy() -> None:
        received.copy_(sent, non_blocking=True)
        p2p.synchronize((source, target))

    return copy


def exchange_of(pair: tuple[str, str]) -> Callable[[], object]:
    """Return a function that copies the largest size in both directions at once, done when it returns.

    Args:
        pair: torch's names of two cards.
    """
    import torch

    blocks: dict[str, list[torch.Tensor]] = {
        card: [torch.zeros(SIZES[-1], dtype=torch.uint8, device=card) for _ in range(2)] for card in pair
    }
    streams = {card: torch.cuda.Stream(device=card) for card in pair}

    def exchange() -> None:
        for here, there in itertools.permutations(pair):
            with torch.cuda.stream(streams[here]):
                blocks[there][1].copy_(blocks[here][0], non_blocking=True)
        p2p.synchronize(pair)

    return exchange


def between_ranks(device: Device, request: Request) -> Verdict:
    """Measure messages between two gloo ranks, which stand in for cards."""
    limit = torchrun.limit_of(request)
    outcome, reports = torchrun.run_ranks(RANK_MODULE, device, 0, limit)
    if outcome.timed_out:
        return torchrun.hung("p2p", device, reports, limit)
    finished = torchrun.finished(reports)
    return conclude(
        probe="p2p",
        summary=f"A stand-in: messages between two gloo ranks, {timing.place_text(device)}.",
        checks=[*torchrun.finish_checks(outcome, reports), *message_checks(reports)],
        numbers=message_figures(finished),
        device=device,
        versions=placement.versions(),
    )


def message_checks(reports: Sequence[Report]) -> list[Check]:
    """Check that each message came back as it was sent."""
    finished = torchrun.finished(reports)
    due = len(SIZES_CPU) * len(finished)
    found = [rank[str(size)]["wrong"] for rank in finished for size in SIZES_CPU if str(size) in rank]
    wrong = at_most("messages", sum(found), 0, "wrong bytes")
    return [wrong, at_most("messages left out", due - len(found), 0, "of all sizes")] if finished else []


def message_figures(finished: Sequence[Phases]) -> list[Number]:
    """Return GB/s and latency of one direction, half of a round trip, by size."""
    if len(finished) < WORLD:
        return []
    name = "gloo rank 0 to rank 1 and back, each way:"
    numbers: list[Number] = []
    for size in SIZES_CPU:
        halves = [seconds / 2 for seconds in finished[0][str(size)]["seconds"][-ROUNDS:]]
        numbers += figure(name, size, halves)
    return numbers


if __name__ == "__main__":
    sys.exit(entry.main("p2p", measure))
