"""Floating point operations of a row, counted by torch itself on a copy without data."""

from __future__ import annotations

import copy
import math

import torch
from torch import nn

from trainer.data.loading.batch import Values, apply, call, tensors
from trainer.models.activation_checkpointing import without_recomputation


def flops_per_row(model: nn.Module, row: Values) -> float | None:
    """Return the FLOPs of one row forward and backward, None where torch cannot count the model.

    Matrix products, convolutions and attention are counted, element-wise work and what is computed again in backward
    are not: as MFU is defined. The copy is on the meta device, so nothing is computed. `row` is one row of inputs; only
    its shape and dtype count.
    """
    from torch.utils.flop_counter import FlopCounterMode

    rows = 2  # one row would let a product become a product with a vector, which is counted otherwise
    try:
        twin = without_recomputation(_without_data(model))
        with FlopCounterMode(display=False) as counter:
            outputs = call(twin, apply(lambda one: one.new_empty(rows, *one.shape[1:], device="meta"), row))
            torch.stack([each.sum() for each in tensors(outputs)]).sum().backward()
    except (RuntimeError, NotImplementedError):  # an operation without a meta kernel
        return None
    return float(counter.get_total_flops()) / rows


def _without_data(model: nn.Module) -> nn.Module:
    """Return a copy on the meta device; at no time are the weights on their own device twice."""
    held: dict[int, torch.Tensor] = {}
    for weight in model.parameters():
        held[id(weight)] = nn.Parameter(weight.detach().to("meta"), requires_grad=weight.requires_grad)
    for buffer in model.buffers():
        held[id(buffer)] = buffer.detach().to("meta")
    twin: nn.Module = copy.deepcopy(model, dict[int, object](held))
    return twin.to("meta")


def utilisation(flops: float | None, rows_per_second: float, peak: float | None) -> float | None:
    """Return the share of the card's peak that the model's FLOPs take, None where either is unknown.

    Args:
        flops: floating-point operations of one row, forward and backward.
        rows_per_second: measured rate.
        peak: the card's peak in FLOP/s.
    """
    if flops is None or not peak or not math.isfinite(rows_per_second):
        return None
    return flops * rows_per_second / peak
