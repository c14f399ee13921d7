"""Search for the reason why two cards do not work together: other transports, and the facts of this machine.

Every probe that takes two cards ends here where it did not pass. Nothing here changes a verdict's status. The cause
is judged from which transports helped and from `host_facts`, never from words in a log. Sources: ROCm/rccl src/init.cc,
ROCm/rccl#1129.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD
from trainer.diagnostics.probes.pair.ranks.host_facts import SHM_NEEDED, HostFacts
from trainer.diagnostics.probes.verdict import Check, CheckStatus, Verdict
from trainer.distributed.transports.transport import GLOO, HOST, NCCL_NO_P2P, Transport

NCCL_NO_SHM = Transport(
    name="nccl-no-shm",
    backend="nccl",
    environment={"NCCL_SHM_DISABLE": "1"},
    why="without shared memory, which is what a container with a small /dev/shm lacks",
)
TRANSPORTS = (NCCL_NO_P2P, NCCL_NO_SHM, GLOO, HOST)
FIRST_SHARE = 0.4  # of the time for the first try on cards; the rest is for what follows a failure
IPC_DENIED = "card memory cannot be shared between processes (IPC denied)"
LEAST_SECONDS = 5.0  # in less no transport can show that it works

Attempt = Callable[[Transport, float], str]  # a transport and its seconds to why it does not work, empty if it does
Judge = Callable[["Sequence[TransportTrial]", HostFacts], tuple[str, str]]  # to the likely cause and its evidence


@dataclass(frozen=True, kw_only=True)
class TransportTrial:
    """One transport: why it did not work or was not tried, empty if it worked, and its seconds."""

    transport: Transport
    cause: str
    seconds: float
    tried: bool = True

    @property
    def helped(self) -> bool:
        """Whether it worked."""
        return self.tried and not self.cause

    @property
    def settings(self) -> str:
        """What to set for it, as text."""
        named = " ".join(f"{name}={value}" for name, value in self.transport.environment.items())
        return named or {"gloo": "the gloo backend", "host": "staging through host memory"}[self.transport.name]


def explained(
    verdict: Verdict, facts: HostFacts, tries: Sequence[TransportTrial] = (), judge: Judge | None = None
) -> Verdict:
    """Return a verdict that did not pass, with what helped and the likely cause in its summary; its status stays.

    Args:
        tries: further runs by other transports.
        judge: returns cause and evidence of the tries; None for the common rules.
    """
    too_few = facts.cards_seen < WORLD
    diagnosis = hidden(facts) if too_few else diagnose(tries, (judge or likely)(tries, facts))
    if not diagnosis:
        return verdict
    return dataclasses.replace(
        verdict,
        summary=f"{verdict.summary} {tries_text(tries, diagnosis['likely cause'])}",
        checks=(*verdict.checks, *map(as_check, tries)),
        diagnosis=diagnosis,
    )


def retry(transports: Sequence[Transport], attempt: Attempt, ends: float) -> tuple[TransportTrial, ...]:
    """Try each of `transports` in an equal share of what is left until `ends`.

    Args:
        transports: transports to try, in order.
        ends: end of the time, in seconds of the monotonic clock.
    """
    tries: list[TransportTrial] = []
    for number, transport in enumerate(transports):
        tries.append(one(transport, attempt, (ends - time.monotonic()) / (len(transports) - number)))
    return tuple(tries)


def one(transport: Transport, attempt: Attempt, seconds: float) -> TransportTrial:
    """Try one transport, unless too little time is left for a result.

    Args:
        seconds: time limit.
    """
    if seconds < LEAST_SECONDS:
        return TransportTrial(transport=transport, cause="no time was left for it", seconds=0.0, tried=False)
    started = time.monotonic()
    cause = attempt(transport, seconds)
    return TransportTrial(transport=transport, cause=cause, seconds=round(time.monotonic() - started, 3))


def tries_text(tries: Sequence[TransportTrial], cause: str) -> str:
    """Return what the trials come to, in a sentence."""
    helped = [tried.settings for tried in tries if tried.helped]
    if helped:
        return f"Fails as it is; passes with {helped[0]} (likely: {cause})."
    if any(tried.tried for tried in tries):
        return f"Fails as it is, and each other transport that was tried (likely: {cause})."
    return f"Likely: {cause}."


def as_check(tried: TransportTrial) -> Check:
    """Return a trial as a check, for the record: the verdict has failed before."""
    status: CheckStatus = "pass" if tried.helped else "fail" if tried.tried else "not-applicable"
    measured = tried.seconds if tried.tried else None
    return Check(name=f"retry with {tried.settings}", status=status, measured=measured, unit="s", detail=tried.cause)


def diagnose(tries: Sequence[TransportTrial], found: tuple[str, str]) -> dict[str, str]:
    """Return what helped, the likely cause and its evidence."""
    helped = [tried.settings for tried in tries if tried.helped]
    none = "none of the transports that were tried" if tries else "nothing was tried"
    return {"helped": "; ".join(helped) or none, "likely cause": found[0], "evidence": found[1]}


def hidden(facts: HostFacts) -> dict[str, str]:
    """Return what hides cards where torch sees one and this machine has more; empty where it has not."""
    if facts.cards_seen != 1 or facts.cards_here < WORLD:
        return {}
    by = ", ".join(f"{name}={value}" for name, value in facts.hiding.items())
    by = by or "no variable hides one: the container was not given its device node, or may not open it"
    seen = f"{facts.cards_here} cards on this machine, {facts.cards_seen} seen by torch"
    return diagnose((), ("a card is hidden", f"{seen}; {by}"))


def likely(tries: Sequence[TransportTrial], facts: HostFacts) -> tuple[str, str]:
    """Return the likely cause and its evidence for two processes, from which transports worked."""
    ok = {tried.transport.name: tried.helped for tried in tries}
    without_shm, small = ok.get(NCCL_NO_SHM.name, False), facts.shm_free < SHM_NEEDED
    by_host = ok.get(GLOO.name, False) or ok.get(HOST.name, False)
    all_fail = len(ok) > 0 and all(tried.tried and tried.cause for tried in tries)
    causes = (  # the first that holds
        (bool(facts.ipc_denied), IPC_DENIED, facts.ipc_denied),
        (ok.get(NCCL_NO_P2P.name, False), between(facts), f"it works without peer access, and {facts.iommu}"),
        (without_shm and small, "/dev/shm is too small", f"it works without; {facts.shm}"),
        (without_shm, "shared memory between the ranks does not work", f"it works without; {facts.shm}"),
        (small, "/dev/shm is too small", facts.shm),
        (by_host, "NCCL (RCCL on ROCm) does not work here", "it works over gloo"),
        (all_fail, "not between the cards: no transport works", "staging through host memory fails, too"),
        (True, "not found", "not every transport was tried"),
    )
    return next((cause, evidence) for holds, cause, evidence in causes if holds)


def of_copies(tries: Sequence[TransportTrial], facts: HostFacts) -> tuple[str, str]:
    """Return the same where one process copies from card to card: neither /dev/shm nor IPC has a part in that."""
    ok = {tried.transport.name: tried.helped for tried in tries}
    without_p2p = ok.get(NCCL_NO_P2P.name, False)
    if ok.get(NCCL_NO_SHM.name, False) and not without_p2p:
        return "NCCL's shared memory does not work", f"it works without; {facts.shm}"
    how = "it works without peer access" if without_p2p else "copies from card to card fail within one process"
    return between(facts), f"{how}, and {facts.iommu}"


def between(facts: HostFacts) -> str:
    """Return what stands between the cards where peer access fails."""
    return "the IOMMU stands between the cards" if facts.iommu_translates else "peer access does not work"
