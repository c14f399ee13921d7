"""Benchmark `all_reduce`: GB/s of a sum over two ranks, by size: NCCL (RCCL on ROCm) on two cards, gloo on a CPU.

GB/s are nccl-tests' bus bandwidth (doc/PERFORMANCE.md), which for two ranks is bytes over seconds. The slower rank
counts. With one card there is nothing to measure, and gloo on the CPU would not stand in for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trainer.diagnostics.bench import timing
from trainer.diagnostics.bench.all_reduce_rank import SIZES, SIZES_CPU
from trainer.diagnostics.probes import entry, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import torchrun
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD
from trainer.diagnostics.probes.pair.ranks.torchrun import Report
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, absent, at_most, conclude

RANK_MODULE = "trainer.diagnostics.bench.all_reduce_rank"
BUS = 2 * (WORLD - 1) / WORLD


def measure(request: Request) -> Verdict:
    """Run two ranks that add up.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device, versions = placement.place(request.expect), placement.versions()
    if device.kind != "cpu" and placement.card_count() < WORLD:
        reason = "One card only, and a sum over cards takes two."
        return absent(probe="all_reduce", reason=reason, device=device, versions=versions)
    limit = torchrun.limit_of(request)
    outcome, reports = torchrun.run_ranks(RANK_MODULE, device, 0, limit)
    if outcome.timed_out:
        return torchrun.hung("all_reduce", device, reports, limit)
    return conclude(
        probe="all_reduce",
        summary=summarise(device),
        checks=[*torchrun.finish_checks(outcome, reports), *sum_checks(reports, device)],
        numbers=speeds(reports),
        device=device,
        versions=versions,
    )


def summarise(device: Device) -> str:
    """Return one sentence on what ran, and on what did not."""
    if device.kind == "cpu":
        return f"Two gloo ranks {timing.place_text(device)}."
    return f"Two ranks on two cards, {timing.place_text(device)}."


def sum_checks(reports: Sequence[Report], device: Device) -> list[Check]:
    """Check that no rank received a wrong sum, at any size, and that each size was tried."""
    finished = torchrun.finished(reports)
    wrong = [
        at_most(name, sum(rank[name]["wrong"] for rank in finished), 0, "wrong elements") for name in sizes(finished)
    ]
    due = len(SIZES_CPU if device.kind == "cpu" else SIZES)
    return [*wrong, at_most("sizes left out", due - len(wrong), 0, "of all sizes")]


def speeds(reports: Sequence[Report]) -> list[Number]:
    """Return the bandwidth by size: of each sum the slower rank's time."""
    finished = torchrun.finished(reports)
    numbers: list[Number] = []
    for name in sizes(finished):
        slower = [max(each) for each in zip(*(rank[name]["seconds"] for rank in finished), strict=True)]
        numbers += timing.rate(name, "GB/s", BUS * finished[0][name]["bytes"] / 1e9, slower)
    return numbers


def sizes(finished: Sequence[torchrun.Phases]) -> list[str]:
    """Return the names of the sizes that both ranks finished."""
    return [name for name in finished[0] if "bytes" in finished[0][name]] if len(finished) == WORLD else []


if __name__ == "__main__":
    sys.exit(entry.main("all_reduce", measure))
