"""Probe `two_gpu_step`: two ranks under torchrun reduce gradients to their mean and step like one process.

With two cards the ranks use NCCL, which is RCCL on ROCm. With fewer they use gloo on the CPU, and the
verdict says so: that proves torchrun, DDP and this probe, and nothing about two cards. So it passes only
where no two cards were promised, under `--expect any` or `--expect cpu`. Who expects `rocm` or `cuda` asks
whether two cards work together; with one card the answer fails closed.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.probes import entry, numerics, placement
from trainer.probes.ddp_rank import STEPS, WORLD
from trainer.probes.entry import Request
from trainer.probes.process import Outcome, run_limited
from trainer.probes.verdict import (
    Check,
    Device,
    Number,
    Verdict,
    at_least,
    at_most,
    conclude,
    equal,
    not_applicable,
)

RANK_MODULE = "trainer.probes.ddp_rank"
MARGIN_SECONDS = 10.0  # kept back from the probe's own limit, to say which rank hung before being killed
GRADIENT_LIMIT = 1e-5  # relative; fp32 sums of this size err by about 1e-7, a sum instead of a mean by 1
WEIGHT_LIMIT = 1e-5  # relative, after STEPS steps; the order of summation differs between one batch and two
MOVED_LIMIT = 1e-2  # relative; weights that hardly moved would prove nothing

Report = list[dict[str, Any]]


def measure(request: Request) -> Verdict:
    """Run two ranks and compare what they report.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    cards = 0 if device.kind == "cpu" else placement.card_count()
    ran_on = device if cards >= WORLD else placement.cpu()
    seed, limit = numerics.fresh_seed(), max(1.0, request.timeout_seconds - MARGIN_SECONDS)
    outcome, reports = run_ranks(ran_on, seed, limit)
    if outcome.timed_out:
        return hung(ran_on, reports, limit)
    return conclude(
        probe="two_gpu_step",
        summary=summarise(ran_on, cards),
        checks=[cards_check(request.expect, cards), *rank_checks(outcome, reports)],
        numbers=[Number(name="seed", value=seed, unit=""), *rank_numbers(reports)],
        device=ran_on,
        versions=placement.versions(),
    )


def run_ranks(device: Device, seed: int, limit: float) -> tuple[Outcome, list[Report]]:
    """Run both ranks on `device` for at most `limit` seconds; how torchrun ended, and each rank's report."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_limited(torchrun(device, Path(folder), seed, limit), seconds=limit, env=rank_environment())
        reports = [read_report(Path(folder, f"rank{rank}.jsonl")) for rank in range(WORLD)]
    sys.stderr.write(outcome.stderr)
    return outcome, reports


def torchrun(device: Device, folder: Path, seed: int, limit: float) -> list[str]:
    """The argument list that starts both ranks on this machine.

    It spells out `--standalone` with an address for the name `localhost`, and passes the address on to the
    ranks: a container without a network may resolve neither `localhost` nor its own host name.
    """
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", f"--rdzv-id={secrets.token_hex(8)}"]
    here = ["--nnodes=1", f"--nproc-per-node={WORLD}", "--local-addr=127.0.0.1", "--max-restarts=0"]
    backend = "gloo" if device.kind == "cpu" else "nccl"
    rank = ["-m", RANK_MODULE, "--backend", backend, "--seed", str(seed)]
    files = ["--report", str(folder), "--timeout", str(limit)]
    return [sys.executable, "-m", "torch.distributed.run", *rendezvous, *here, *rank, *files]


def rank_environment() -> dict[str, str]:
    """This environment, with gloo bound to the loopback interface: both ranks are here, whatever else is up."""
    return {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **os.environ}


def read_report(path: Path) -> Report:
    """The phases that a rank reached; empty if it never began."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def hung(device: Device, reports: Sequence[Report], limit: float) -> Verdict:
    """The verdict on ranks that did not finish: where each of them stopped."""
    stops = [f"rank {rank} {last_phase(report)}" for rank, report in enumerate(reports)]
    return Verdict(
        probe="two_gpu_step",
        status="timeout",
        summary=f"The two ranks did not finish within {limit:g} s: {', '.join(stops)}.",
        device=device,
        versions=placement.versions(),
    )


def last_phase(report: Report) -> str:
    """How far a rank came, in words."""
    if not report:
        return "never started"
    phase = report[-1]["phase"]
    return "finished" if phase == "done" else f"stopped after {phase!r}"


def summarise(ran_on: Device, cards: int) -> str:
    """One sentence on what ran, and on what did not."""
    if ran_on.kind != "cpu":
        return f"Two ranks on two cards ({ran_on.name}) stepped like one process."
    here = "no card" if cards == 0 else "one card only"
    return f"Two gloo ranks on CPU stepped like one process; {here}, so two cards were not tested."


def cards_check(expect: str, cards: int) -> Check:
    """Two cards, where cards are expected."""
    if cards >= WORLD or expect in ("rocm", "cuda"):
        detail = "" if cards >= WORLD else "two cards were not tested; gloo ranks ran on the CPU instead"
        return at_least("two cards", cards, WORLD, "cards", detail)
    return not_applicable("two cards", f"{cards} card(s) here; the ranks ran on the CPU over gloo")


def rank_checks(outcome: Outcome, reports: Sequence[Report]) -> list[Check]:
    """Both ranks finished, reduced to the mean, stepped like one process, and agree to the bit."""
    finished = [phases(report) for report in reports if report and report[-1]["phase"] == "done"]
    stops = ", ".join(f"rank {rank} {last_phase(report)}" for rank, report in enumerate(reports))
    checks = [
        equal("ranks finished", len(finished), WORLD, "ranks", stops),
        equal("torchrun's exit status", outcome.returncode if outcome.returncode is not None else "none", 0),
    ]
    if len(finished) < WORLD:
        return checks
    errors = [found["gradients"]["error"] for found in finished]
    weights = [found["weights"] for found in finished]
    unit = "relative Frobenius error"
    return [
        *checks,
        equal("processes", len({found["started"]["pid"] for found in finished}), WORLD, "processes"),
        at_most("gradients against analytic mean", numerics.worst(errors), GRADIENT_LIMIT, unit),
        at_most("weights against one process", numerics.worst(w["error"] for w in weights), WEIGHT_LIMIT, unit),
        at_least("weights moved", min(w["moved"] for w in weights), MOVED_LIMIT, "relative change"),
        equal("distinct weights among ranks", len({w["sha256"] for w in weights}), 1, "sets of weights"),
    ]


def rank_numbers(reports: Sequence[Report]) -> list[Number]:
    """The slower rank's time to join the group and to train, where the ranks got that far."""
    found = [phases(report) for report in reports]
    named = {"time to join the group": "joined", f"time of {STEPS} steps, shared and alone": "weights"}
    times = {name: [f[phase]["seconds"] for f in found if phase in f] for name, phase in named.items()}
    return [Number(name=name, value=round(max(each), 4), unit="s") for name, each in times.items() if each]


def phases(report: Report) -> dict[str, dict[str, Any]]:
    """A rank's report by phase."""
    return {line["phase"]: line for line in report}


if __name__ == "__main__":
    sys.exit(entry.main("two_gpu_step", measure))
