"""Probe `two_gpu_step`: two ranks under torchrun reduce gradients to their mean and step like one process (DDP).

Where two cards fail, the same step is tried again with other ways to communicate, to find what is in the way; see
`two_cards`. DataParallel, FSDP2 and a pipeline have probes, and verdicts, of their own.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from trainer.probes import entry, numerics, placement, two_cards, two_ranks
from trainer.probes.ddp_rank import STEPS, WORLD
from trainer.probes.entry import Request
from trainer.probes.process import Outcome
from trainer.probes.two_ranks import Place, Report
from trainer.probes.verdict import Check, Number, Verdict, at_least, at_most, conclude, equal

RANK_MODULE = "trainer.probes.ddp_rank"
FIRST_SHARE = 0.4  # of the time for the first try on cards; the rest is for the retries
GRADIENT_LIMIT = 1e-5  # relative; fp32 sums of this size err by about 1e-7, a sum instead of a mean by 1
WEIGHT_LIMIT = 1e-5  # relative, after STEPS steps; the order of summation differs between one batch and two
MOVED_LIMIT = 1e-2  # relative; weights that hardly moved would prove nothing


def measure(request: Request) -> Verdict:
    """Run two ranks and compare what they report; on two cards that fail, look for the reason.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    place, seed, limit = two_ranks.place(request.expect), numerics.fresh_seed(), two_ranks.limit_of(request)
    on_cards = place.ran_on.kind != "cpu"
    verdict = once(request, place, seed, limit * FIRST_SHARE if on_cards else limit)
    if verdict.status == "pass":
        return verdict
    tries = two_cards.retry(RANK_MODULE, place.ran_on, limit * (1 - FIRST_SHARE), works) if on_cards else ()
    diagnosis = two_cards.diagnose(place, tries, two_cards.circumstances(place))
    return dataclasses.replace(verdict, checks=(*verdict.checks, *map(two_cards.as_check, tries)), diagnosis=diagnosis)


def once(request: Request, place: Place, seed: int, limit: float) -> Verdict:
    """The verdict on one run of both ranks."""
    outcome, reports = two_ranks.run_ranks(RANK_MODULE, place.ran_on, seed, limit)
    if outcome.timed_out:
        return two_ranks.hung("two_gpu_step", place.ran_on, reports, limit)
    return conclude(
        probe="two_gpu_step",
        summary=summarise(place),
        checks=[two_ranks.cards_check(request.expect, place.cards), *rank_checks(outcome, reports)],
        numbers=[Number(name="seed", value=seed, unit=""), *rank_numbers(reports)],
        device=place.ran_on,
        versions=placement.versions(),
    )


def summarise(place: Place) -> str:
    """One sentence on what ran, and on what did not."""
    if not place.short_of_cards:
        return f"Two ranks on two cards ({place.ran_on.name}) stepped like one process."
    return f"Two gloo ranks on CPU stepped like one process; {place.short_of_cards}."


def works(outcome: Outcome, reports: Sequence[Report]) -> str:
    """Why a run of both ranks is not right, empty if it is."""
    failed = [check.name for check in rank_checks(outcome, reports) if check.status == "fail"]
    stops = [f"rank {rank} {two_ranks.last_phase(report)}" for rank, report in enumerate(reports)]
    return f"{', '.join(failed)} ({', '.join(stops)})" if failed else ""


def rank_checks(outcome: Outcome, reports: Sequence[Report]) -> list[Check]:
    """Both ranks finished, reduced to the mean, stepped like one process, and agree to the bit."""
    checks, finished = two_ranks.finish_checks(outcome, reports), two_ranks.finished(reports)
    if len(finished) < WORLD:
        return checks
    errors = [found["gradients"]["error"] for found in finished]
    weights = [found["weights"] for found in finished]
    unit = "relative Frobenius error"
    return [
        *checks,
        at_most("gradients against analytic mean", numerics.worst(errors), GRADIENT_LIMIT, unit),
        at_most("weights against one process", numerics.worst(w["error"] for w in weights), WEIGHT_LIMIT, unit),
        at_least("weights moved", min(w["moved"] for w in weights), MOVED_LIMIT, "relative change"),
        equal("distinct weights among ranks", len({w["sha256"] for w in weights}), 1, "sets of weights"),
    ]


def rank_numbers(reports: Sequence[Report]) -> list[Number]:
    """The slower rank's time to join the group and to train, where the ranks got that far."""
    found = [two_ranks.phases(report) for report in reports]
    named = {"time to join the group": "joined", f"time of {STEPS} steps, shared and alone": "weights"}
    times = {name: [f[phase]["seconds"] for f in found if phase in f] for name, phase in named.items()}
    return [Number(name=name, value=round(max(each), 4), unit="s") for name, each in times.items() if each]


if __name__ == "__main__":
    sys.exit(entry.main("two_gpu_step", measure))
