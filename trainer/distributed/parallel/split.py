"""Split of layers over cards, so that the fullest card is as empty as it can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from torch import nn

from trainer.runtime.errors import TrainerError

ADAM = 4  # weights, gradients and AdamW's two moments


def cut(costs: Sequence[float], capacities: Sequence[float]) -> list[slice]:
    """Return consecutive, non-empty slices of layers, one for each card in order.

    `costs` and `capacities` are in one unit, bytes. The largest ratio of a slice's cost to its card's capacity is
    the least possible; of equal ones the earlier cut. Time is layers^2 * cards.

    Raises:
        TrainerError: RM563 for fewer layers than cards.
    """
    layers, cards = len(costs), len(capacities)
    if layers < cards:
        raise TrainerError("RM563", what=f"{layers} layers cannot be split over {cards} ranks")
    before = [0.0, *accumulate(costs)]
    # worst[n]: the least largest ratio of the first n layers on the cards so far; starts[card][n]: its last cut
    worst = [before[n] / capacities[0] if n else float("inf") for n in range(layers + 1)]
    starts: list[list[int]] = [[0] * (layers + 1)]
    for capacity in capacities[1:]:
        best = [
            min(
                ((max(worst[s], (before[n] - before[s]) / capacity), s) for s in range(1, n)), default=(float("inf"), 0)
            )
            for n in range(layers + 1)
        ]
        worst = [ratio for ratio, _ in best]
        starts.append([start for _, start in best])
    slices: list[slice] = []
    end = layers
    for card in reversed(range(cards)):
        start = starts[card][end]
        slices.insert(0, slice(start, end))
        end = start
    return slices


def cost(layer: nn.Module) -> int:
    """Return the bytes that training a layer with AdamW holds for good; activations come on top."""
    trained = {True: ADAM, False: 1}
    weights = sum(trained[each.requires_grad] * each.numel() * each.element_size() for each in layer.parameters())
    return weights + sum(each.numel() * each.element_size() for each in layer.buffers())
