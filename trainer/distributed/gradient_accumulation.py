"""Gradient accumulation over micro-batches: the gradient is that of the whole batch, however it is cut.

Each piece's loss is a sum over its rows, divided by the weight of the whole batch over all ranks. So pieces
add up to the weighted mean; a mean of the pieces' means would weigh a small last piece like a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from trainer.data.loading.batch import Values, count, cut, tensors
from trainer.models.decoder.recomputation import SameWeights
from trainer.models.losses import LossSum

Scale = Callable[[Tensor], Tensor]
MicroStep = Callable[[bool], AbstractContextManager[object]]
# Takes a piece's inputs, its targets and the weight of the batch; returns the piece's loss with the gradients in place,
# or None where the piece is to be computed as written here.
Replay = Callable[[Values, Values, Any], Tensor | None]


def full(loss: Tensor) -> Tensor:
    """Return a sum of losses; raises TypeError for one that was summed in fewer than 32 bits."""
    if loss.dtype in (torch.float32, torch.float64):
        return loss
    raise TypeError(f"the loss function summed in {loss.dtype}; cast outputs to float32 before the sum")


def cuts(rows: int, size: int) -> Iterator[slice]:
    """Return the pieces of `rows` rows: `size` each, the last the rest; none for no rows."""
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def loss_of_piece(outputs: Any, targets: Values, loss_sum: LossSum, weight: float | Tensor) -> Tensor:
    """Return a piece's part of the batch's mean loss, a scalar.

    Args:
        outputs: of the model, for the piece's rows.
        targets: targets of the same rows.
        loss_sum: the sum of the losses of the rows.
        weight: divisor: the weight of the batch over all ranks.
    """
    return full(loss_sum(outputs, targets)) / weight


def accumulate(  # noqa: PLR0913
    forward: Callable[[Any], Any],
    inputs: Values,
    targets: Values,
    *,
    size: int,
    weight: float | Tensor,
    loss_sum: LossSum,
    context: MicroStep,
    scale: Scale | None = None,
    pieces: int = 0,
    dtype: torch.dtype | None = None,
    replay: Replay | None = None,
) -> Tensor:
    """Run forward and backward over one batch in pieces, adding to the gradients.

    Returns this rank's part of the batch's mean loss, unscaled, a scalar on the device; the ranks' parts add up.

    Args:
        forward: the model, possibly wrapped.
        inputs: this rank's rows, possibly none; the first dimension of its tensors is the rows.
        targets: targets of the same rows.
        size: rows of one piece.
        weight: divisor of the summed losses: the weight of the batch over all ranks.
        loss_sum: the sum of the losses of a piece's rows.
        context: wraps each piece; receives whether it is the last.
        scale: multiplies the loss before backward (a GradScaler's); None for 1.
        pieces: least number of pieces, the last ones empty: where forward waits for the other ranks, all must call it
            equally often.
        dtype: type that losses are summed in; None for that of floating targets, at least fp32.
        replay: computes the pieces that it can in the same way, and faster; None for none.
    """

    def compute(piece: Values, piece_targets: Values) -> Tensor:
        replayed = None if replay is None else replay(piece, piece_targets, weight)
        if replayed is not None:
            return replayed
        loss = loss_of_piece(forward(piece), piece_targets, loss_sum, weight)
        (loss if scale is None else scale(loss)).backward()
        return loss.detach()

    rows = count(targets)
    if 0 < rows <= size and pieces <= 1:  # a slice would cost the host as much as a layer
        with context(True):
            return compute(inputs, targets)
    first = next(tensors(targets))
    total = torch.zeros((), device=first.device, dtype=dtype or torch.promote_types(first.dtype, torch.float32))
    each = list(cuts(rows, size))
    each += [slice(0, 0)] * (pieces - len(each))
    if not each:
        with context(True):  # a rank without rows still sends gradients when the others do
            return total
    for number, piece in enumerate(each, start=1):
        with context(number == len(each)), SameWeights() if number > 1 else nullcontext():
            total += compute(cut(inputs, piece), cut(targets, piece))
    return total
