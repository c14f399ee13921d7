"""Start two ranks of a program under torchrun, and read what each of them reports.

With two cards the ranks use NCCL, which is RCCL on ROCm. With fewer they use gloo on the CPU, and the
verdict states it: that proves torchrun, torch and the probe, and nothing about two cards. So it passes only
where no two cards were promised, under `--expect any` or `--expect cpu`. Who expects `rocm` or `cuda` asks
whether two cards work together; with one card the answer fails closed.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD
from trainer.diagnostics.probes.verdict import Check, Device, Verdict, at_least, equal, not_applicable
from trainer.runtime.child_process import Outcome, run_limited

MARGIN_SECONDS = 10.0  # kept back from the probe's own limit, to report which rank hung before being killed

Report = list[dict[str, Any]]
Phases = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Place of the ranks of a request, and the number of cards here."""

    ran_on: Device
    cards: int

    @property
    def short_of_cards(self) -> str:
        """What to report of a run that stands in for one on two cards; empty where it is one."""
        if self.ran_on.kind != "cpu":
            return ""
        return f"{'no card' if self.cards == 0 else 'one card only'}, so two cards were not tested"


def place(expect: str) -> Place:
    """Return two cards where they are, else the CPU.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(expect)
    cards = 0 if device.kind == "cpu" else placement.card_count()
    return Place(ran_on=device if cards >= WORLD else placement.cpu(), cards=cards)


def pairs(cards: int) -> tuple[tuple[int, int], ...]:
    """Return pairs of torch's numbers such that each of `cards` cards is in one; of an odd number one is in two."""
    two_by_two = [(first, first + 1) for first in range(0, cards - 1, WORLD)]
    return (*two_by_two, *([(cards - WORLD, cards - 1)] if cards % WORLD and cards > WORLD else []))


def named(pair: Sequence[int]) -> str:
    """Return what stands before the name of a check of this pair: nothing for the first."""
    return "" if tuple(pair) == (0, 1) else f"cards {pair[0]} and {pair[1]}: "


def tried(pairs: Sequence[Sequence[int]]) -> str:
    """Return which pairs were tried, where there are several."""
    words = ", ".join(f"{first} and {second}" for first, second in pairs)
    return f", on each pair of cards ({words})" if len(pairs) > 1 else ""


def participants(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return the cards on which ranks reported that they reached their end."""
    return tuple(found["joined"]["card"] for found in finished(reports) if found["joined"].get("card"))


def limit_of(request: Request) -> float:
    """Return how long the ranks may take."""
    return max(1.0, request.timeout_seconds - MARGIN_SECONDS)


def run_ranks(
    module: str,
    device: Device,
    seed: int,
    limit: float,
    *,
    backend: str = "",
    environment: Mapping[str, str] | None = None,
) -> tuple[Outcome, list[Report]]:
    """Run both ranks of `module` for at most `limit` seconds; how torchrun ended, and each rank's report.

    Without a `backend` it is NCCL on cards and gloo on the CPU.

    Args:
        module: dotted name of the module that the ranks run.
        seed: seed of the random numbers.
        limit: time limit in seconds.
        backend: torch's name of the backend; empty for NCCL on cards and gloo on the CPU.
        environment: variables in addition to this process's.
    """
    backend = backend or ("gloo" if device.kind == "cpu" else "nccl")
    with tempfile.TemporaryDirectory() as folder:
        argv = torchrun(module, Path(folder), seed, limit, backend)
        outcome = run_limited(argv, seconds=limit, env=rank_environment() | dict(environment or {}))
        reports = [read_report(Path(folder, f"rank{rank}.jsonl")) for rank in range(WORLD)]
    sys.stderr.write(outcome.stderr)
    return outcome, reports


def torchrun(module: str, folder: Path, seed: int, limit: float, backend: str) -> list[str]:
    """Return the argument list that starts both ranks on this machine.

    It spells out `--standalone` with an address for the name `localhost`, and passes the address on to the
    ranks: a container without a network may resolve neither `localhost` nor its own host name.

    Args:
        module: dotted name of the module that the ranks run.
        folder: folder for the ranks' reports.
        seed: seed of the random numbers.
        limit: time limit in seconds.
        backend: torch's name of the backend.
    """
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", f"--rdzv-id={secrets.token_hex(8)}"]
    here = ["--nnodes=1", f"--nproc-per-node={WORLD}", "--local-addr=127.0.0.1", "--max-restarts=0"]
    rank = ["-m", module, "--backend", backend, "--seed", str(seed)]
    files = ["--report", str(folder), "--timeout", str(limit)]
    return [sys.executable, "-m", "torch.distributed.run", *rendezvous, *here, *rank, *files]


def rank_environment() -> dict[str, str]:
    """Return this environment, with gloo bound to the loopback interface, as both ranks are here."""
    return {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **os.environ}


def read_report(path: Path) -> Report:
    """Return the phases that a rank reached; empty if it never began."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def hung(probe: str, device: Device, reports: Sequence[Report], limit: float) -> Verdict:
    """Return the verdict on ranks that did not finish: where each of them stopped.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        reports: what each rank reported.
        limit: time limit in seconds.
    """
    stops = [f"rank {rank} {last_phase(report)}" for rank, report in enumerate(reports)]
    return Verdict(
        probe=probe,
        status="timeout",
        summary=f"The two ranks did not finish within {limit:g} s: {', '.join(stops)}.",
        device=device,
        versions=placement.versions(),
    )


def last_phase(report: Report) -> str:
    """Return how far a rank came, as text."""
    if not report:
        return "never started"
    phase = report[-1]["phase"]
    return "finished" if phase == "done" else f"stopped after {phase!r}"


def cards_check(expect: str, cards: int) -> Check:
    """Check that there are two cards, where cards are expected."""
    if cards >= WORLD or expect in ("rocm", "cuda"):
        detail = "" if cards >= WORLD else "two cards were not tested; gloo ranks ran on the CPU instead"
        return at_least("two cards", cards, WORLD, "cards", detail)
    return not_applicable("two cards", f"{cards} card(s) here; the ranks ran on the CPU over gloo")


def finish_checks(outcome: Outcome, reports: Sequence[Report]) -> list[Check]:
    """Check that both ranks finished, torchrun reports success, and they were two processes."""
    found = finished(reports)
    stops = ", ".join(f"rank {rank} {last_phase(report)}" for rank, report in enumerate(reports))
    checks = [
        equal("ranks finished", len(found), WORLD, "ranks", stops),
        equal("torchrun's exit status", outcome.returncode if outcome.returncode is not None else "none", 0),
    ]
    if len(found) < WORLD:
        return checks
    return [*checks, equal("processes", len({each["started"]["pid"] for each in found}), WORLD, "processes")]


def finished(reports: Sequence[Report]) -> list[Phases]:
    """Return the phases of each rank that reached its end."""
    return [phases(report) for report in reports if report and report[-1]["phase"] == "done"]


def phases(report: Report) -> Phases:
    """Return a rank's report by phase."""
    return {line["phase"]: line for line in report}
