"""Memory that fully_shard leaves on a card: a share of weights, gradients and optimizer states, and the whole group.

Counted as `distributed.parallel.sharded` applies it: a group a block, and one of all other weights, which stays whole
from the first use to the end of backward. By torch's design (torch/distributed/fsdp/_fully_shard), not measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from torch import nn

from trainer.models.activation_checkpointing import layers
from trainer.run.memory_plan.live_memory import TRIALS, Peak

BLOCKS = 3  # whole at a time: the one that computes, the one gathered for it to follow, and the buffer of gathering


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Bytes of weights: of the largest block, of those in no block, of all; and of these what is trained."""

    block: int
    block_trained: int
    rest: int
    rest_trained: int
    all: int


def groups_of(model: nn.Module) -> Groups:
    """Return the groups in which fully_shard gathers the weights of `model`."""
    blocks = [list(block.parameters()) for block in layers(model)]
    within = {id(weight) for block in blocks for weight in block}
    rest = [weight for weight in model.parameters() if id(weight) not in within]
    largest = max(blocks, key=_bytes, default=[])
    return Groups(
        block=_bytes(largest),
        block_trained=_bytes(each for each in largest if each.requires_grad),
        rest=_bytes(rest),
        rest_trained=_bytes(each for each in rest if each.requires_grad),
        all=_bytes(model.parameters()),
    )


def spread(segment: str, peak: Peak, groups: Groups, cards: int, *, pieces: int) -> Peak:
    """Return the largest moment of a segment of the step on one of several cards.

    Args:
        segment: one of `live_memory.SEGMENTS`.
        peak: that of one card with all.
        groups: bytes of the weights that are gathered together.
        cards: over how many cards weights, gradients and states are spread.
        pieces: micro-batches of a step; until the last one gradients stay whole.
    """
    if segment == TRIALS or not peak.allocated:
        return peak
    parts = {"weights": 0, "gradients": 0, "optimizer": 0, "workspace": 0} | peak.parts
    shared = ("optimizer",) if pieces > 1 and segment != "optimizer" else ("optimizer", "gradients")
    parts |= {part: parts[part] // cards for part in shared}
    parts["weights"] -= groups.all - groups.all // cards  # buffers, as weights of 4 bits, are whole on every card
    if segment == "optimizer":
        parts["workspace"] //= cards
    else:
        parts["weights"] += groups.rest + BLOCKS * groups.block
    if "backward" in segment:
        parts["gradients"] += groups.rest_trained + groups.block_trained if pieces == 1 else 0
        parts["workspace"] += max(groups.rest_trained, groups.block_trained)  # what is sent
    allocated = sum(parts.values())
    return replace(peak, allocated=allocated, reserved=allocated * peak.reserved // peak.allocated, parts=parts)


def _bytes(weights: Iterable[nn.Parameter]) -> int:
    return sum(each.numel() * each.element_size() for each in weights)
