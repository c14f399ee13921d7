"""Losses: the sum of a loss over rows, and the weight of each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.loading.chunks import chunks

LossSum = Callable[[Any, Any], Tensor]

SQUARED_ERROR, CROSS_ENTROPY = "squared error", "cross entropy"


def squared_error_sum(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the sum of squared errors over all rows, in the targets' dtype."""
    return nn.functional.mse_loss(outputs.to(targets.dtype), targets, reduction="sum")


def loss_sum_of(name: str, class_weights: Sequence[float] | None = None) -> LossSum:
    """Return the sum over rows of the loss called `name`.

    Cross entropy takes scores (rows, classes) and the classes' numbers as floats (rows, 1), and weighs each row by
    its class.

    Raises:
        ValueError: for a loss that this trainer does not know.
    """
    if name == SQUARED_ERROR:
        return squared_error_sum
    if name != CROSS_ENTROPY:
        raise ValueError(f"no loss called {name!r}; known: {SQUARED_ERROR}, {CROSS_ENTROPY}")

    def cross_entropy_sum(outputs: Tensor, targets: Tensor) -> Tensor:
        outputs = outputs.to(targets.dtype)
        weights = None if class_weights is None else outputs.new_tensor(class_weights)
        classes = targets.squeeze(1).long()
        return nn.functional.cross_entropy(outputs, classes, weight=weights, reduction="sum")

    return cross_entropy_sum


def batch_weight_of(class_weights: Sequence[float] | None) -> Callable[[Tensor], Tensor] | None:
    """Return what a batch of targets (rows, 1) weighs, None where it is its number of rows."""
    if class_weights is None:
        return None
    return lambda targets: targets.new_tensor(class_weights)[targets.squeeze(1).long()].sum()


@torch.no_grad()
def mean_loss(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    loss_sum: LossSum = squared_error_sum,
    batch_weight: Callable[[Tensor], Tensor] | None = None,
    device: torch.device | None = None,
) -> float:
    """Return the mean loss over all rows, the model in evaluation mode; weighted where rows weigh differently.

    `device` is the model's, where the rows are on another one.

    Args:
        model: network; left in evaluation mode.
        inputs: first dimension rows.
        targets: first dimension rows.
        loss_sum: loss summed over rows.
        batch_weight: weight of a batch's targets; None for the number of rows.
        device: device of the model; None where the rows are on it.
    """
    model.eval()
    device = device or targets.device
    weight = len(targets) if batch_weight is None else batch_weight(targets).clamp_min(torch.finfo(targets.dtype).tiny)
    total = targets.new_zeros((), device=device)
    for piece in chunks(len(targets)):
        outputs = model(inputs[piece].to(device))
        total = total + loss_sum(outputs.to(targets.dtype), targets[piece].to(device))
    return (total / weight).item()
