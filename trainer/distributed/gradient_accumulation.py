"""A batch in pieces: the gradient is that of the whole batch, however it is cut, whoever computes a piece.

Each piece's loss is a sum over its rows, divided by the weight of the whole batch over all ranks. So pieces
add up to the weighted mean; a mean of the pieces' means would weigh a small last piece like a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from trainer.models.losses import LossSum

Scale = Callable[[Tensor], Tensor]
MicroStep = Callable[[bool], AbstractContextManager[object]]


def cuts(rows: int, size: int) -> Iterator[slice]:
    """Return the pieces of `rows` rows: `size` each, the last the rest; none for no rows."""
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def accumulate(  # noqa: PLR0913
    forward: Callable[[Tensor], Tensor],
    inputs: Tensor,
    targets: Tensor,
    *,
    size: int,
    weight: float | Tensor,
    loss_sum: LossSum,
    context: MicroStep,
    scale: Scale | None = None,
    pieces: int = 0,
) -> Tensor:
    """Run forward and backward over one batch in pieces of `size` rows, adding to the gradients.

    `inputs` (rows, features) and `targets` (rows, outputs) are this rank's rows, perhaps none; `weight` is the
    weight of the batch over all ranks. `context` wraps each piece and is told whether it is the last; `scale`
    multiplies the loss before backward (a GradScaler's). At least `pieces` pieces are computed, the last ones empty:
    where forward waits for the other ranks, all must call it equally often.

    Returns this rank's part of the batch's mean loss, unscaled, a scalar on the device; the ranks' parts add up.
    """

    def compute(rows: Tensor, wanted: Tensor) -> Tensor:
        loss = loss_sum(forward(rows), wanted) / weight
        (loss if scale is None else scale(loss)).backward()
        return loss.detach()

    if 0 < len(targets) <= size and pieces <= 1:  # a slice would cost the host as much as a layer
        with context(True):
            return compute(inputs, targets)
    total = torch.zeros((), device=targets.device, dtype=targets.dtype)
    each = list(cuts(len(targets), size))
    each += [slice(0, 0)] * (pieces - len(each))
    if not each:
        with context(True):  # a rank without rows still sends gradients when the others do
            return total
    for number, piece in enumerate(each, start=1):
        with context(number == len(each)):
            total += compute(inputs[piece], targets[piece])
    return total
