"""Probe `two_gpu_step`: two ranks under torchrun reduce gradients to their mean and step like one process (DDP).

Where two cards fail, the same step is tried again with other transports, to find what is in the way, as in
every probe of two ranks; see `ranks.cause_search`. DataParallel, FSDP2 and a pipeline have probes, and verdicts, of
their own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trainer.diagnostics.probes import entry, numerics
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, judge, torchrun
from trainer.diagnostics.probes.pair.ranks.compare_steps import MOVED_LIMIT, WEIGHT_LIMIT
from trainer.diagnostics.probes.pair.ranks.ddp_rank import STEPS, WORLD
from trainer.diagnostics.probes.pair.ranks.judge import Subject
from trainer.diagnostics.probes.pair.ranks.torchrun import Report
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, at_least, at_most, equal

RANK_MODULE = "trainer.diagnostics.probes.pair.ranks.ddp_rank"
GRADIENT_LIMIT = 1e-5  # relative; fp32 sums of this size err by about 1e-7, a sum instead of a mean by 1


def measure(request: Request) -> Verdict:
    """Run two ranks and compare what they report; on two cards that fail, look for the reason.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    subject = Subject(
        probe="two_gpu_step",
        module=RANK_MODULE,
        did="stepped like one process",
        place=torchrun.place(request.expect),
        checks=step_checks,
        numbers=rank_numbers,
        transports=cause_search.TRANSPORTS,
    )
    return judge.measure(subject, request)


def step_checks(reports: Sequence[Report]) -> list[Check]:
    """Check that both ranks reduced to the mean, stepped like one process, and agree to the bit."""
    finished = torchrun.finished(reports)
    if len(finished) < WORLD:
        return []
    errors = [found["gradients"]["error"] for found in finished]
    weights = [found["weights"] for found in finished]
    unit = "relative Frobenius error"
    return [
        at_most("gradients against analytic mean", numerics.worst(errors), GRADIENT_LIMIT, unit),
        at_most("weights against one process", numerics.worst(w["error"] for w in weights), WEIGHT_LIMIT, unit),
        at_least("weights moved", numerics.least(w["moved"] for w in weights), MOVED_LIMIT, "relative change"),
        equal("distinct weights among ranks", len({w["sha256"] for w in weights}), 1, "sets of weights"),
    ]


def rank_numbers(reports: Sequence[Report]) -> list[Number]:
    """Return the slower rank's time to join the group and to train, where the ranks got that far."""
    found = [torchrun.phases(report) for report in reports]
    named = {"time to join the group": "joined", f"time of {STEPS} steps, shared and alone": "weights"}
    times = {name: [f[phase]["seconds"] for f in found if phase in f] for name, phase in named.items()}
    return [Number(name=name, value=round(max(each), 4), unit="s") for name, each in times.items() if each]


if __name__ == "__main__":
    sys.exit(entry.main("two_gpu_step", measure))
