"""Permutation importance: the loss when one input is shuffled among the rows (Breiman 2001)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from trainer.models.losses import LossSum, mean_loss


@dataclass(frozen=True, kw_only=True)
class Importance:
    """Mean and standard deviation, over the shuffles, of how much the loss grows where `name` is shuffled."""

    name: str
    mean: float
    deviation: float


def importances(
    network: nn.Module, inputs: Tensor, targets: Tensor, names: list[str], *, loss: LossSum, repeats: int, seed: int
) -> list[Importance]:
    """Return the importance of each input, the largest first; inputs (rows, features), targets (rows, 1).

    A shuffle depends on `seed`, the input's place and the repeat alone.

    Args:
        network: network in eval mode.
        inputs: shape (rows, features).
        targets: shape (rows, 1).
        names: names of the features, in the order of the columns.
        loss: loss summed over rows.
        repeats: shuffles of each input.
        seed: seeds the shuffles of columns; the same seed repeats the figures.
    """
    base = mean_loss(network, inputs, targets, loss)
    found = []
    for place, name in enumerate(names):
        grown = [
            mean_loss(network, _shuffled(inputs, place, (seed, place, repeat)), targets, loss) - base
            for repeat in range(repeats)
        ]
        found.append(Importance(name=name, mean=float(np.mean(grown)), deviation=float(np.std(grown))))
    return sorted(found, key=lambda each: -each.mean)


def _shuffled(inputs: Tensor, place: int, seed: tuple[int, ...]) -> Tensor:
    changed = inputs.clone()
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(inputs)))
    changed[:, place] = inputs[order, place]
    return changed
