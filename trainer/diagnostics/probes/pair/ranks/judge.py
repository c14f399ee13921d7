"""What the probes of two ranks share: run both, judge their reports, and look for the reason where two cards fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainer.diagnostics.probes import numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search as two_cards
from trainer.diagnostics.probes.pair.ranks import host_facts as circumstances
from trainer.diagnostics.probes.pair.ranks import ipc as card_ipc
from trainer.diagnostics.probes.pair.ranks import torchrun as two_ranks
from trainer.diagnostics.probes.pair.ranks.ddp_rank import ROUTE
from trainer.diagnostics.probes.pair.ranks.torchrun import Place, Report
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, conclude
from trainer.distributed.transports.route import Route
from trainer.runtime.child_process import Outcome

IPC_SHARE = 0.2  # of the time after the first try


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What two ranks try: the module of each, what they did as text, and how their reports are read.

    Those of `ways` are tried where it fails on two cards.
    """

    probe: str
    module: str
    did: str
    place: Place
    checks: Callable[[Sequence[Report]], list[Check]]
    numbers: Callable[[Sequence[Report]], list[Number]]
    ways: Sequence[Route]


def measure(subject: Subject, request: Request) -> Verdict:
    """Run both ranks; on two cards that fail, try the other ways and name the likely cause."""
    limit, place = two_ranks.limit_of(request), subject.place
    ends, on_cards = time.monotonic() + limit, place.ran_on.kind != "cpu"
    verdict = once(subject, request, limit * two_cards.FIRST_SHARE if on_cards else limit)
    if verdict.status == "pass":
        return verdict
    facts = circumstances.read(place.cards, ipc_seconds=ipc_seconds(ends))
    tries = two_cards.retry(subject.ways, lambda *way: again(subject, *way), ends) if on_cards else ()
    return two_cards.explained(verdict, facts, tries)


def ipc_seconds(ends: float) -> float:
    """How long another process may take to open card memory, so that the retries still end in time."""
    return min(card_ipc.SECONDS, IPC_SHARE * max(0.0, ends - time.monotonic()))


def once(subject: Subject, request: Request, limit: float) -> Verdict:
    """The verdict on one run of both ranks."""
    place, seed = subject.place, numerics.fresh_seed()
    outcome, reports = two_ranks.run_ranks(subject.module, place.ran_on, seed, limit)
    if outcome.timed_out:
        return two_ranks.hung(subject.probe, place.ran_on, reports, limit)
    return conclude(
        probe=subject.probe,
        summary=summarise(place, subject.did),
        checks=[two_ranks.cards_check(request.expect, place.cards), *checks(subject, outcome, reports)],
        numbers=[Number(name="seed", value=seed, unit=""), *subject.numbers(reports)],
        device=place.ran_on,
        versions=placement.versions(),
    )


def checks(subject: Subject, outcome: Outcome, reports: Sequence[Report]) -> list[Check]:
    """Both ranks finished, and what the subject asks of their reports."""
    return [*two_ranks.finish_checks(outcome, reports), *subject.checks(reports)]


def again(subject: Subject, way: Route, seconds: float) -> str:
    """Why both ranks do not work by another way either; empty if they do."""
    outcome, reports = two_ranks.run_ranks(
        subject.module,
        subject.place.ran_on,
        numerics.fresh_seed(),
        seconds,
        backend=way.backend,
        environment={**way.environment, ROUTE: way.name},
    )
    stops = ", ".join(f"rank {rank} {two_ranks.last_phase(report)}" for rank, report in enumerate(reports))
    if outcome.timed_out:
        return f"no end within {seconds:.0f} s ({stops})"
    failed = [check.name for check in checks(subject, outcome, reports) if check.status == "fail"]
    return f"{', '.join(failed)} ({stops})" if failed else ""


def summarise(place: Place, did: str) -> str:
    """One sentence on what ran, and on what did not."""
    if not place.short_of_cards:
        return f"Two ranks on two cards ({place.ran_on.name}) {did}."
    return f"Two gloo ranks on CPU {did}; {place.short_of_cards}."
