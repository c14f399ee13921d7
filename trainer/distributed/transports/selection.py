"""Try the transports in order until one adds correctly on all ranks; every rank comes to the same choice."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Protocol

from trainer.distributed.transports.attempt import SIZES
from trainer.distributed.transports.link import Link, measured
from trainer.distributed.transports.transport import Transport
from trainer.runtime.child_process import Outcome, run_limited
from trainer.runtime.errors import TrainerError

ATTEMPT = "trainer.distributed.transports.attempt"
SECONDS = 60.0  # a first RCCL start has been seen to take 20 s
VOTE_MARGIN_S = 30.0  # beyond a trial's own limit: killing what hangs in a driver takes time, too


class Store(Protocol):
    """The part of torch.distributed.Store that a vote needs."""

    def set(self, key: str, value: str) -> None:
        """Write `value` under `key`."""

    def get(self, key: str) -> bytes:
        """Wait for `key` and return its value."""

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        """Wait for all of `keys`."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A rank's place: its number, its device, the address of the store that all ranks reach, its start's name."""

    rank: int
    world: int
    device: str
    address: str
    rendezvous_id: str = "trainer"

    def prefix(self, transport: Transport) -> str:
        """Return a prefix for keys that no other trial uses."""
        return f"{self.rendezvous_id}/comms/{transport.name}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Result of one rank's trial of a transport; `cause` is empty if it passed."""

    transport: str
    rank: int
    cause: str
    seconds: float
    small_s: float = 0.0
    large_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The transport that all ranks take, why, and what its link does (None where it was not measured)."""

    transport: Transport
    reason: str
    link: Link | None = None


Reporter = Callable[..., None]


def choose(
    transports: Sequence[Transport], place: Place, store: Store, *, report: Reporter, seconds: float = SECONDS
) -> Choice:
    """Return the first of `transports` that passes on all ranks; `report` receives each verdict as an event.

    Args:
        transports: candidates, best first.
        report: receives each verdict as an event.
        seconds: time limit of one trial.

    Raises:
        TrainerError: RM561 with every cause where none passes; RM561, too, where another rank does not answer.
    """
    causes: list[str] = []
    for transport in transports:
        mine = trial(transport, place, seconds=seconds)
        verdicts = vote(transport, place, store, mine, seconds=seconds)
        failed = [verdict for verdict in verdicts if verdict.cause]
        cause = "; ".join(f"rank {verdict.rank}: {verdict.cause}" for verdict in failed)
        link = None if failed else slowest(verdicts, place.world)
        report("comms", route=transport.name, passed=not failed, cause=cause, link=link.as_dict() if link else None)
        if link:
            reason = f"passed its probe on {place.world} ranks" + "".join(f"; {text}" for text in causes)
            return Choice(transport=transport, reason=reason, link=link)
        causes.append(f"{transport.name} did not: {cause}")
    raise TrainerError("RM561", what="\n".join(causes), where=f"{place.world} ranks")


def trial(transport: Transport, place: Place, *, seconds: float) -> Verdict:
    """Run this rank's part of the trial in a process of its own for at most `seconds`.

    Args:
        seconds: time limit.
    """
    argv = [
        sys.executable,
        "-m",
        ATTEMPT,
        "--transport",
        transport.name,
        "--device",
        place.device,
        "--store",
        place.address,
    ]
    ranks = ["--rank", str(place.rank), "--world", str(place.world), "--seconds", str(seconds)]
    outcome = run_limited(
        [*argv, *ranks, "--prefix", place.prefix(transport)], seconds=seconds, env=environment(transport, os.environ)
    )
    return judge(transport, place.rank, outcome)


def environment(transport: Transport, base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with what the transport sets; NCCL's message about a failure is worth its lines."""
    return {"NCCL_DEBUG": "WARN", **base, **transport.environment}


def judge(transport: Transport, rank: int, outcome: Outcome) -> Verdict:
    """Return the verdict on a trial that ended, was killed, or printed a finding.

    Args:
        rank: number of the rank that the trial ran on.
    """
    records = [json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")]
    finding = next((record["done"] for record in records if "done" in record), None)
    times: dict[str, float] = finding["seconds"] if finding else {}
    return Verdict(
        transport=transport.name,
        rank=rank,
        cause=_cause(records, finding, outcome),
        seconds=round(outcome.seconds, 3),
        small_s=times.get(str(SIZES[0]), 0.0),
        large_s=times.get(str(SIZES[-1]), 0.0),
    )


def _cause(records: list[dict[str, Any]], finding: dict[str, Any] | None, outcome: Outcome) -> str:
    """Return why a trial did not pass, empty if it did; one killed at its exit after right sums failed, too."""
    step = next((record["begin"] for record in reversed(records) if "begin" in record), "start")
    if finding and finding["wrong"]:
        return str(finding["wrong"])
    if outcome.timed_out:
        return f"hung in {step!r}, ended after {outcome.seconds:.0f} s"
    if outcome.returncode == 0 and finding:
        return ""
    how = outcome.signal_name or f"status {outcome.returncode}"
    last = outcome.stderr_tail(lines=1)
    return f"ended by {how} in {step!r}" + (f": {last}" if last else "")


def vote(transport: Transport, place: Place, store: Store, mine: Verdict, *, seconds: float) -> list[Verdict]:
    """Return every rank's verdict in rank order, the same on all ranks.

    Args:
        mine: this rank's verdict.
        seconds: time limit of the trial; waiting for the others adds a margin.

    Raises:
        TrainerError: RM561 where a rank's verdict does not come.
    """
    keys = [f"{place.prefix(transport)}/verdict/{rank}" for rank in range(place.world)]
    store.set(keys[place.rank], json.dumps(asdict(mine)))
    try:
        store.wait(keys, timedelta(seconds=seconds + VOTE_MARGIN_S))
    except RuntimeError as error:  # torch's DistStoreError and its plain predecessors
        what = f"not all ranks reported their trial of {transport.name}"
        raise TrainerError("RM561", what=what, why=str(error).splitlines()[0]) from None
    return [Verdict(**json.loads(store.get(key))) for key in keys]


def slowest(verdicts: Sequence[Verdict], world: int) -> Link:
    """Return the link as the slowest rank saw it."""
    return measured(
        ranks=world,
        small_s=max(verdict.small_s for verdict in verdicts),
        large_bytes=4 * SIZES[-1],
        large_s=max(verdict.large_s for verdict in verdicts),
    )
