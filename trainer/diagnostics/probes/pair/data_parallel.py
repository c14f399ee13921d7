"""Probe `two_gpu_step_data_parallel`: DataParallel over two cards steps like one card.

One process, one thread a card. torch has it for cards only, so with fewer than two there is nothing to try. With more
than two, one pair after the other is tried, until each card was in one.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, child, ddp_rank, host_facts, torchrun
from trainer.diagnostics.probes.pair.ranks.compare_steps import MOVED_LIMIT, WEIGHT_LIMIT
from trainer.diagnostics.probes.pair.ranks.ddp_rank import STEPS, WORLD
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, absent, at_least, at_most, conclude, equal
from trainer.distributed.transports.transport import NCCL_NO_P2P, Transport

if TYPE_CHECKING:
    import torch

PROBE = "two_gpu_step_data_parallel"
MODULE = "trainer.diagnostics.probes.pair.data_parallel"
TRANSPORTS = (
    NCCL_NO_P2P,
    cause_search.NCCL_NO_SHM,
)  # weights are broadcast by NCCL within the process, never gloo


def measure(request: Request) -> Verdict:
    """Train on two cards and on one in a child; where they differ, look for the reason.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device, limit = placement.place(request.expect), torchrun.limit_of(request)
    cards, ends = (0 if device.kind == "cpu" else placement.card_count()), time.monotonic() + limit
    if cards < WORLD:
        reason = f"DataParallel was not tried: it takes two cards, and here {'is one' if cards else 'is none'}."
        missing = absent(probe=PROBE, reason=reason, device=device, versions=placement.versions())
        return cause_search.explained(missing, host_facts.read(cards))
    found = child.verdict(PROBE, MODULE, request, limit * cause_search.FIRST_SHARE)
    if found.status == "pass":
        return found
    tries = cause_search.retry(TRANSPORTS, lambda *trial: retry_failure(request, *trial), ends)
    return cause_search.explained(found, host_facts.read(cards), tries, cause_search.of_copies)


def retry_failure(request: Request, transport: Transport, seconds: float) -> str:
    """Return why it does not work by another transport either; empty if it does.

    Args:
        seconds: time limit.
    """
    found = child.verdict(PROBE, MODULE, request, seconds, transport.environment)
    return "" if found.status == "pass" else found.summary


def direct(request: Request) -> Verdict:
    """Train on two cards and on one, from the same weights on the same batches; then on the next two."""
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    pairs = torchrun.pairs(placement.card_count())
    numerics.strict_fp32()
    found = conclude(
        probe=PROBE,
        summary=f"DataParallel over two cards ({device.name}) stepped like one card{torchrun.tried(pairs)}.",
        checks=[check for pair in pairs for check in checks(seed, pair)],
        numbers=[Number(name="seed", value=seed, unit=""), Number(name="steps", value=STEPS, unit="steps")],
        device=device,
        versions=placement.versions(),
    )
    present = placement.card_ids()
    return dataclasses.replace(found, cards=present, present=present)


def checks(seed: int, pair: Sequence[int]) -> list[Check]:
    """Check that both cards computed, the weights moved, and they are those of the first card alone."""
    card, which = first(pair), torchrun.named(pair)
    alone, shared = ddp_rank.seeded_mlp(seed).to(card), ddp_rank.seeded_mlp(seed).to(card)
    batches = [ddp_rank.joined(ddp_rank.draw_shards(seed, step)) for step in range(STEPS)]
    parallel, used = spread(shared, pair)
    ddp_rank.train(alone, batches, card)
    ddp_rank.train(parallel, batches, card)
    reference = ddp_rank.flat_weights(alone).double()
    start = ddp_rank.flat_weights(ddp_rank.seeded_mlp(seed)).double()
    error = numerics.relative_error(ddp_rank.flat_weights(shared), reference)
    return [
        equal(f"{which}cards that computed", len(used), WORLD, "cards"),
        at_most(f"{which}weights against one card", error, WEIGHT_LIMIT, "relative Frobenius error"),
        at_least(f"{which}weights moved", numerics.relative_error(reference, start), MOVED_LIMIT, "relative change"),
    ]


def first(pair: Sequence[int]) -> torch.device:
    """Return the card that holds the model, and the one that is trained on alone."""
    import torch

    return torch.device("cuda", pair[0])


def spread(model: torch.nn.Module, pair: Sequence[int]) -> tuple[torch.nn.Module, set[str]]:
    """Return `model` over two cards, the first of which holds it, and the cards that its last layer computes on."""
    import torch

    used: set[str] = set()
    last = list(model.children())[-1]
    last.register_forward_hook(lambda module, inputs, output: used.update({str(output.device)}))
    return torch.nn.DataParallel(model, device_ids=list(pair)), used


if __name__ == "__main__":
    sys.exit(child.main(PROBE, measure, direct))
