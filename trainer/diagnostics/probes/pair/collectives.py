"""Probe `collectives`: two ranks add, gather and broadcast correctly; bus bandwidth by size.

The addends are whole numbers, so that any order of summation must return them exactly. Bus bandwidth is as
nccl-tests define it (doc/PERFORMANCE.md): bytes / seconds times 2 (n - 1) / n for all-reduce, (n - 1) / n for
all-gather with the bytes of its result, 1 for broadcast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trainer.diagnostics.probes import entry
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, judge, torchrun
from trainer.diagnostics.probes.pair.ranks.collectives_rank import SIZES, SIZES_CPU
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD
from trainer.diagnostics.probes.pair.ranks.judge import Subject
from trainer.diagnostics.probes.pair.ranks.torchrun import Report
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, at_most

RANK_MODULE = "trainer.diagnostics.probes.pair.ranks.collectives_rank"
BUS = {"all-reduce": 2 * (WORLD - 1) / WORLD, "all-gather": (WORLD - 1) / WORLD, "broadcast": 1.0}


def measure(request: Request) -> Verdict:
    """Run two ranks, which compare what arrives with what must.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    place = torchrun.place(request.expect)
    expected = len(BUS) * len(SIZES_CPU if place.ran_on.kind == "cpu" else SIZES)
    subject = Subject(
        probe="collectives",
        module=RANK_MODULE,
        did="added, gathered and broadcast correctly",
        place=place,
        checks=lambda reports: sum_checks(reports, expected),
        numbers=bandwidths,
        transports=cause_search.TRANSPORTS,
    )
    return judge.measure(subject, request)


def sum_checks(reports: Sequence[Report], expected: int) -> list[Check]:
    """Check that no rank received a wrong element in any operation and size, and that each was tried."""
    finished = torchrun.finished(reports)
    if len(finished) < WORLD:
        return []
    names = [name for name in finished[0] if "bytes" in finished[0][name]]
    wrong = [
        at_most(f"{name}", sum(found[name]["wrong"] for found in finished), 0, "wrong elements on both ranks")
        for name in names
    ]
    return [*wrong, at_most("operations left out", expected - len(names), 0, "of all operations and sizes")]


def bandwidths(reports: Sequence[Report]) -> list[Number]:
    """Return the bus bandwidth of the slower rank, and the latency of the smallest size."""
    finished = torchrun.finished(reports)
    if len(finished) < WORLD:
        return []
    numbers = []
    for name, found in finished[0].items():
        if "bytes" in found:
            seconds = max(rank[name]["seconds"] for rank in finished)
            speed = BUS[found["operation"]] * found["bytes"] / seconds / 1e9
            numbers.append(Number(name=f"{name} bus bandwidth", value=round(speed, 4), unit="GB/s"))
            numbers.append(Number(name=f"{name} time", value=round(1e6 * seconds, 1), unit="µs"))
    return numbers


if __name__ == "__main__":
    sys.exit(entry.main("collectives", measure))
