"""Comparison of steps in probes whose two ranks hold parts of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes import numerics
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, ddp_rank, judge, torchrun
from trainer.diagnostics.probes.pair.ranks.ddp_rank import STEPS, WORLD
from trainer.diagnostics.probes.pair.ranks.judge import Subject
from trainer.diagnostics.probes.pair.ranks.torchrun import Report
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, at_least, at_most, equal
from trainer.distributed.transports.transport import Transport

if TYPE_CHECKING:
    import torch

WHOLE = slice(None)
WEIGHT_LIMIT = 1e-5  # relative, after STEPS steps; the order of summation differs between one batch and two
MOVED_LIMIT = 1e-2  # relative; weights that hardly moved would prove nothing


def measure(
    probe: str, module: str, request: Request, did: str, transports: Sequence[Transport] = cause_search.TRANSPORTS
) -> Verdict:
    """Return the verdict on two ranks of `module`; `did` states what they did.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        module: dotted name of the module that the ranks run.
        did: what the ranks did, as text for the summary.
        transports: transports to try after a failure.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    subject = Subject(
        probe=probe,
        module=module,
        did=did,
        place=torchrun.place(request.expect),
        checks=weight_checks,
        numbers=lambda reports: [Number(name="steps", value=STEPS, unit="steps")],
        transports=transports,
    )
    return judge.measure(subject, request)


def compare(found: torch.Tensor, seed: int, device: torch.device, *, held: int, part: slice = WHOLE) -> dict[str, Any]:
    """Compare, in a rank, its weights with those of the whole model trained alone; `part` is their place there.

    Args:
        found: this rank's weights, flattened.
        seed: seeds weights and batches; equal seeds train equally.
        device: device that the whole model is trained on.
        held: number of weights that this rank keeps.
        part: place of `found` among all weights.
    """
    alone = ddp_rank.seeded_mlp(seed).to(device)
    ddp_rank.train(alone, [ddp_rank.joined(ddp_rank.draw_shards(seed, step)) for step in range(STEPS)], device)
    whole = ddp_rank.flat_weights(alone).double()
    start = ddp_rank.flat_weights(ddp_rank.seeded_mlp(seed)).double()
    return {
        "error": numerics.relative_error(found, whole[part]),
        "moved": numerics.relative_error(whole[part], start[part]),
        "held": held,
        "of": len(whole),
    }


def weight_checks(reports: Sequence[Report]) -> list[Check]:
    """Check that the weights moved, are those of one process, and that each rank held a part of them only."""
    finished = torchrun.finished(reports)
    if len(finished) < WORLD:
        return []
    weights = [found["weights"] for found in finished]
    error = numerics.worst(each["error"] for each in weights)
    return [
        at_most("weights against one process", error, WEIGHT_LIMIT, "relative Frobenius error"),
        at_least("weights moved", numerics.least(each["moved"] for each in weights), MOVED_LIMIT, "relative change"),
        equal("weights held by both ranks", sum(each["held"] for each in weights), weights[0]["of"], "weights"),
    ]
