"""Judgement of two ranks: run both, compare their reports, and search for the reason where two cards fail."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainer.diagnostics.probes import numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, host_facts, ipc, torchrun
from trainer.diagnostics.probes.pair.ranks.ddp_rank import CARDS, ROUTE, WORLD
from trainer.diagnostics.probes.pair.ranks.torchrun import Place, Report
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, conclude
from trainer.distributed.transports.transport import Transport
from trainer.runtime.child_process import Outcome

Named = TypeVar("Named", Check, Number)
IPC_SHARE = 0.2  # of the time after the first try


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Subject of two ranks: the module of each, what they did as text, and how their reports are read.

    Those of `transports` are tried where it fails on two cards.
    """

    probe: str
    module: str
    did: str
    place: Place
    checks: Callable[[Sequence[Report]], list[Check]]
    numbers: Callable[[Sequence[Report]], list[Number]]
    transports: Sequence[Transport]


def measure(subject: Subject, request: Request) -> Verdict:
    """Run both ranks; on two cards that fail, try the other transports and name the likely cause."""
    limit, place = torchrun.limit_of(request), subject.place
    ends, on_cards = time.monotonic() + limit, place.ran_on.kind != "cpu"
    verdicts = of_pairs(subject, request, limit * cause_search.FIRST_SHARE if on_cards else limit)
    verdict, pair = joined(verdicts, place), pairs_of(place)[len(verdicts) - 1]
    if verdict.status == "pass":
        return verdict
    facts = host_facts.read(place.cards, ipc_seconds=ipc_seconds(ends))
    tries = (
        cause_search.retry(
            subject.transports, lambda transport, seconds: retry_failure(subject, transport, seconds, pair), ends
        )
        if on_cards
        else ()
    )
    return cause_search.explained(verdict, facts, tries)


def ipc_seconds(ends: float) -> float:
    """Return how long another process may take to open card memory, so that the retries still end in time."""
    return min(ipc.SECONDS, IPC_SHARE * max(0.0, ends - time.monotonic()))


def pairs_of(place: Place) -> tuple[tuple[int, ...], ...]:
    """Return the pairs to try, each card in one; an empty one stands for the CPU."""
    return torchrun.pairs(place.cards) if place.ran_on.kind != "cpu" else ((),)


def of_pairs(subject: Subject, request: Request, limit: float) -> list[Verdict]:
    """Return the verdicts on one pair after the other, up to the first that did not pass.

    Args:
        limit: time limit of one run in seconds.
    """
    verdicts: list[Verdict] = []
    for pair in (chosen := pairs_of(subject.place)):
        verdicts.append(of_pair(subject, request, limit / len(chosen), pair))
        if verdicts[-1].status != "pass":
            break
    return verdicts


def of_pair(subject: Subject, request: Request, limit: float, pair: Sequence[int]) -> Verdict:
    """Return the verdict on one run of both ranks, on the cards with these numbers; on the CPU where there are none.

    Args:
        limit: time limit in seconds.
        pair: torch's numbers of the two cards; empty for the CPU.
    """
    place, seed = subject.place, numerics.fresh_seed()
    outcome, reports = torchrun.run_ranks(subject.module, place.ran_on, seed, limit, environment=chooses(pair))
    if outcome.timed_out:
        found = torchrun.hung(subject.probe, place.ran_on, reports, limit)
        return dataclasses.replace(found, summary=f"{found.summary}{of_which(place, pair)}")
    found = conclude(
        probe=subject.probe,
        summary=summarise(place, subject.did),
        checks=[torchrun.cards_check(request.expect, place.cards), *checks(subject, outcome, reports)],
        numbers=[Number(name="seed", value=seed, unit=""), *subject.numbers(reports)],
        device=place.ran_on,
        versions=placement.versions(),
    )
    summary = f"{found.summary}{of_which(place, pair)}"
    return dataclasses.replace(found, summary=summary, cards=torchrun.participants(reports))


def chooses(pair: Sequence[int]) -> dict[str, str]:
    """Return the environment in which both ranks take these cards."""
    return {CARDS: ",".join(map(str, pair))} if pair else {}


def of_which(place: Place, pair: Sequence[int]) -> str:
    """Name the pair where there are several."""
    return f" (cards {pair[0]} and {pair[1]} of {place.cards})" if place.cards > WORLD and pair else ""


def joined(verdicts: Sequence[Verdict], place: Place) -> Verdict:
    """Return one verdict on all pairs: the last one's, with the cards that took part in any and the checks of all."""
    cards = dict.fromkeys(card for verdict in verdicts for card in verdict.cards)
    present = placement.card_ids() if place.ran_on.kind != "cpu" else ()
    several = len(verdicts) > 1
    return dataclasses.replace(
        verdicts[-1],
        checks=tuple(_named(check, n, several=several) for n, v in enumerate(verdicts) for check in v.checks),
        numbers=tuple(_named(number, n, several=several) for n, v in enumerate(verdicts) for number in v.numbers),
        cards=tuple(cards),
        present=present,
    )


def _named(one: Named, place: int, *, several: bool) -> Named:
    return dataclasses.replace(one, name=f"pair {place + 1}: {one.name}") if several and place else one


def checks(subject: Subject, outcome: Outcome, reports: Sequence[Report]) -> list[Check]:
    """Check that both ranks finished, and what the subject requires of their reports.

    Args:
        reports: what each rank reported.
    """
    return [*torchrun.finish_checks(outcome, reports), *subject.checks(reports)]


def retry_failure(subject: Subject, transport: Transport, seconds: float, pair: Sequence[int] = ()) -> str:
    """Return why both ranks do not work by another transport either; empty if they do.

    Args:
        seconds: time limit.
        pair: torch's numbers of the two cards; empty for the first two.
    """
    outcome, reports = torchrun.run_ranks(
        subject.module,
        subject.place.ran_on,
        numerics.fresh_seed(),
        seconds,
        backend=transport.backend,
        environment={**transport.environment, **chooses(pair), ROUTE: transport.name},
    )
    stops = ", ".join(f"rank {rank} {torchrun.last_phase(report)}" for rank, report in enumerate(reports))
    if outcome.timed_out:
        return f"no end within {seconds:.0f} s ({stops})"
    failed = [check.name for check in checks(subject, outcome, reports) if check.status == "fail"]
    return f"{', '.join(failed)} ({stops})" if failed else ""


def summarise(place: Place, did: str) -> str:
    """Return one sentence on what ran, and on what did not."""
    if not place.short_of_cards:
        return f"Two ranks on two cards ({place.ran_on.name}) {did}."
    return f"Two gloo ranks on CPU {did}; {place.short_of_cards}."
