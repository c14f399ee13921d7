"""Probe `memory`: patterns over nearly all of a card's free memory keep every bit, and its bandwidth is a sound card's.

Zeros, ones, one walking bit, each word's own address, random words: written to all of it, then read and compared on
the device. On a CPU a small piece of host memory is tried, and the verdict states it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.memory import bandwidth, holding, patterns
from trainer.diagnostics.probes.memory.holding import GIB, LEAST_FREE, MIB, PIECE, Room
from trainer.diagnostics.probes.memory.patterns import BITS, PATTERNS, WORD, Piece, Wrong
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_least, at_most, conclude, equal
from trainer.diagnostics.probes.verdict import not_applicable as absent

FULL_SECONDS = 40.0  # for all patterns
TIME_SHARE = 0.25  # of the time limit, where that is less
HELD_LIMIT = 0.9  # of what was to be held; other programs take and free memory meanwhile
SMALL = 4 * MIB  # bytes of a piece on a CPU, and of the comparison's own trial


def measure(request: Request) -> Verdict:
    """Take the bandwidth, hold memory, and try each pattern on all of it; a card without room for that fails.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    if device.kind == "cpu":
        return tried(device, request)
    import torch

    if (free := holding.free_bytes(device)) < LEAST_FREE:
        return without_room(device, free, why_little(holding.total_bytes()))
    try:
        return tried(device, request)
    except torch.cuda.OutOfMemoryError:
        left = holding.free_bytes(device)
        return without_room(
            device, left, f"{free >> 20} MiB were free at first, and other programs took them meanwhile"
        )


def why_little(total: int) -> str:
    """Return why a card has no room for the probe, with the next step.

    Args:
        total: bytes that the card has in all.
    """
    if total < 2 * LEAST_FREE:  # a processor's graphics with a carve-out of 512 MiB, and a kernel that shows no more
        return (
            f"the card shows {total >> 20} MiB in all: give the processor's graphics more in the firmware's setup, or "
            "take a kernel whose driver counts shared memory (ttm.pages_limit)"
        )
    return "other programs hold the card's memory: end them and run the probe again"


def without_room(device: Device, free: int, why: str) -> Verdict:
    """Return the verdict on a card of which nothing could be tried.

    Args:
        free: bytes that are free.
        why: reason and next step, as text.
    """
    check = Check(
        name="room", status="fail", measured=free / MIB, limit=LEAST_FREE / MIB, unit="MiB free, at least", detail=why
    )
    kept = [Number(name="free", value=round(free / MIB, 1), unit="MiB")]
    return conclude(
        probe="memory", summary="", checks=[check], numbers=kept, device=device, versions=placement.versions()
    )


def tried(device: Device, request: Request) -> Verdict:
    """Return the verdict on memory that is there."""
    seed = numerics.fresh_seed()
    seconds = min(FULL_SECONDS, TIME_SHARE * request.timeout_seconds)
    speeds = bandwidth.measure(device)
    empty_cache(device)
    room = holding.room(device, seconds, speeds["copy"] * 1e9)
    seen = patterns.seen_bits(device.torch_type, SMALL // WORD, seed)
    held = hold(device, room.requested)
    found = try_all(held, device, seed, time.monotonic() + seconds)
    tested = sum(piece.view.numel() for piece in held) * WORD
    return conclude(
        probe="memory",
        summary=summarise(device, room, tested, speeds, sum(each is not None for each in found.values())),
        checks=[equal("comparison", seen, BITS, "flipped bits found"), *checks(device, room, tested, found, speeds)],
        numbers=[*bandwidth.numbers(speeds), *numbers(room, tested, seed)],
        device=device,
        versions=placement.versions(),
    )


def empty_cache(device: Device) -> None:
    """Release the memory that torch keeps for later."""
    import torch

    if device.kind != "cpu":
        torch.cuda.empty_cache()


def hold(device: Device, requested: int) -> list[Piece]:
    """Hold memory and return it in pieces.

    Args:
        requested: bytes.
    """
    size = SMALL if device.kind == "cpu" else PIECE
    return patterns.pieces(holding.hold(device.torch_type, requested), size // WORD)


def try_all(held: Sequence[Piece], device: Device, seed: int, ends: float) -> dict[str, Wrong | None]:
    """Try the patterns one after the other; None for those that the time did not reach.

    Args:
        held: pieces of the held memory.
        seed: seed of the random pattern.
        ends: time of the monotonic clock after which none is begun.
    """
    found: dict[str, Wrong | None] = dict.fromkeys(PATTERNS)
    for name, make in PATTERNS.items():
        if not held or (name != next(iter(PATTERNS)) and time.monotonic() > ends):
            break
        found[name] = patterns.tried(make, held, device.torch_type, seed)
    return found


def checks(
    device: Device, room: Room, tested: int, found: Mapping[str, Wrong | None], speeds: Mapping[str, float]
) -> list[Check]:
    """Return the verdicts on what was held, on each pattern, and on the bandwidth.

    Args:
        tested: bytes that were held.
        found: wrong words by pattern; None for one that was not tried.
        speeds: GB/s by kind of access.
    """
    share = tested / max(1, room.requested)
    held = at_least(
        "held", share, HELD_LIMIT, "of what was to be held", f"{tested >> 20} of {room.requested >> 20} MiB"
    )
    units = 0 if device.kind == "cpu" else compute_units()
    return [held, *(judged(name, wrong) for name, wrong in found.items()), *bandwidth.checks(device, speeds, units)]


def judged(name: str, wrong: Wrong | None) -> Check:
    """Return the verdict on a pattern.

    Args:
        name: name of the pattern.
        wrong: what was found; None where it was not tried.
    """
    if wrong is None:
        return absent(name, "the time did not reach it, or there was no memory to try it on")
    return at_most(name, wrong.words, 0, "wrong words", wrong.where)


def compute_units() -> int:
    """Return the compute units of the first card as torch counts them."""
    import torch

    return int(torch.cuda.get_device_properties(0).multi_processor_count)


def summarise(device: Device, room: Room, tested: int, speeds: Mapping[str, float], tried: int) -> str:
    """Return one sentence on what was tried.

    Args:
        tested: bytes that were held.
        speeds: GB/s by kind of access.
        tried: number of patterns that the time was enough for.
    """
    kept = "kept all patterns" if tried == len(PATTERNS) else f"kept {tried} of {len(PATTERNS)} patterns in the time"
    if device.kind == "cpu":
        return f"A small piece of host memory, {tested >> 20} MiB, {kept}; no card's memory was tried."
    least = f", no more, as {room.why}" if room.why else ""
    rates = ", ".join(f"{kind} {speed:.0f}" for kind, speed in speeds.items())
    amount = f"{tested / GIB:.1f} of {room.free / GIB:.1f} GiB free on {device.name}"
    return f"{amount} {kept}{least}; GB/s: {rates}."


def numbers(room: Room, tested: int, seed: int) -> list[Number]:
    """Return seed, what was tested, and what was free.

    Args:
        tested: bytes that were held.
        seed: seed of the random pattern.
    """
    named = {"tested": tested, "free": room.free}
    sizes = [Number(name=name, value=round(value / MIB, 1), unit="MiB") for name, value in named.items()]
    return [Number(name="seed", value=seed, unit=""), *sizes]


if __name__ == "__main__":
    sys.exit(entry.main("memory", measure))
