"""Benchmark `scaling`: rows/s of training on one card and on two, and the efficiency, by network and batch.

Steps are the trainer's own: alone as `train --step auto` takes them, together as `train --ranks 2` does, over the
transport that the ranks choose. Efficiency is the rate of two over twice that of one: at the same batch (strong), which
is the same training, and at the same rows on each card (weak), which is a training with twice the batch. On a CPU two
gloo ranks stand in for the cards. The rows are synthetic.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.diagnostics.bench import timing
from trainer.diagnostics.bench.cards.scaling_rank import SECONDS, cases_of
from trainer.diagnostics.probes import entry, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import torchrun
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD
from trainer.diagnostics.probes.pair.ranks.torchrun import Phases, Report
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, absent, at_most, conclude, equal

RANK_MODULE = "trainer.diagnostics.bench.cards.scaling_rank"
FALLS_TO = 0.95  # of the first loss, at most: the rows have something to learn in them


def measure(request: Request) -> Verdict:
    """Run two ranks that train alone and together.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device, versions = placement.place(request.expect), placement.versions()
    if device.kind != "cpu" and placement.card_count() < WORLD:
        reason = "One card is here, and scaling takes two; nothing was measured."
        return absent(probe="scaling", reason=reason, device=device, versions=versions)
    limit = torchrun.limit_of(request)
    seconds = {SECONDS: str(request.seconds)}
    outcome, reports = torchrun.run_ranks(RANK_MODULE, device, 0, limit, environment=seconds)
    if outcome.timed_out:
        return torchrun.hung("scaling", device, reports, limit)
    finished = torchrun.finished(reports)
    return conclude(
        probe="scaling",
        summary=summarise(device, finished),
        checks=[*torchrun.finish_checks(outcome, reports), *training_checks(reports, device)],
        numbers=[number for found in measured(finished) for number in figures(found)],
        device=device,
        versions=versions,
    )


def summarise(device: Device, finished: Sequence[Phases]) -> str:
    """Return one sentence on what ran: the cards and the transport, or the stand-in."""
    comms = finished[0]["joined"]["comms"] if finished else "no transport"
    if device.kind == "cpu":
        return f"A stand-in: two gloo ranks on one machine, {timing.place_text(device)}."
    return f"One card against two over {comms}, {timing.place_text(device)}."


def measured(finished: Sequence[Phases]) -> list[Mapping[str, Any]]:
    """Return the findings of rank 0 by case, in their order; none where a rank did not come to its end."""
    if len(finished) < WORLD:
        return []
    return [found for found in finished[0].values() if "alone" in found]


def training_checks(reports: Sequence[Report], device: Device) -> list[Check]:
    """Check that each case was tried, both ranks hold the same weights, and the loss fell alone and together."""
    finished = torchrun.finished(reports)
    found = measured(finished)
    checks = [at_most("cases left out", len(cases_of(device.torch_type)) - len(found), 0, "of all cases")]
    for each in found:
        theirs = [rank[each["phase"]]["sha256"] for rank in finished]
        checks.append(equal(f"{each['phase']}, weights", theirs[0], theirs[1], "SHA-256 on both ranks"))
        for way in ("alone", "together"):
            first, last = each[f"{way}_losses"]
            checks.append(at_most(f"{each['phase']}, loss {way}", last, FALLS_TO * first, "of the last epoch"))
    return checks


def figures(found: Mapping[str, Any]) -> list[Number]:
    """Return the rates of one case and its efficiencies.

    Args:
        found: what rank 0 reported of it: seconds of each sample by way, and rows of a sample.
    """
    name = found["phase"]
    numbers: list[Number] = []
    for way, words in (("alone", "one"), ("together", "two"), ("doubled", "two, twice the batch")):
        numbers += timing.rate(f"{name}, {words}", "rows/s", found[f"{way}_rows"], found[way])
    one, same, doubled = (rate_of(found, way) for way in ("alone", "together", "doubled"))
    for words, both in (("same batch", same), ("same rows a card", doubled)):
        share = timing.rounded(100 * both / (WORLD * one))
        numbers.append(Number(name=f"{name}, efficiency at the {words}", value=share, unit="%"))
    return numbers


def rate_of(found: Mapping[str, Any], way: str) -> float:
    """Return rows a second of a way, by the median sample."""
    return float(found[f"{way}_rows"] / statistics.median(found[way]))


if __name__ == "__main__":
    sys.exit(entry.main("scaling", measure))
