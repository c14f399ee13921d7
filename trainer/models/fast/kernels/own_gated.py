"""The backward pass of a gated activation over what it reads, by an own Triton kernel, where that has no other use."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from trainer.models.fast.elementwise import Elementwise

NAMED = ", own activation"


def suits(gated: bool, dtype: torch.dtype, tile: int) -> bool:
    """Return whether there is something for the kernel to do.

    Args:
        gated: whether the feed-forward layers have a gate.
        dtype: of the products; the error function is made for 16 bits.
        tile: see `feed_forward.FeedForward`: 0 where a layer keeps what the kernel writes over.
    """
    return gated and tile > 0 and dtype.itemsize == 2


def with_own_gated(ops: Elementwise) -> Elementwise:
    """Return the operations, with the kernel for layers that are computed by tiles."""
    return replace(ops, name=ops.name + NAMED, inner_backward_over=backward_over)


def backward_over(joint: Tensor, gradient: Tensor, kind: str, gated: bool) -> tuple[Tensor, Tensor]:
    """Return what `elementwise.inner_backward` returns, in the memory of both inputs.

    Args:
        joint: gate and up side by side, (tokens, 2 width).
        gradient: by act(gate) * up, (tokens, width).
        kind: a key of ACTIVATIONS.
        gated: True.
    """
    from trainer.models.fast.kernels import triton_gated

    joint, gradient = joint.contiguous(), gradient.contiguous()
    triton_gated.backward_over(joint, gradient, kind)
    return joint, gradient
