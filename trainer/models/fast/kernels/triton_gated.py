"""A Triton kernel of a gated activation's backward pass, which writes its results over what it reads.

A compiled graph makes new tensors for them: of a feed-forward layer computed by tiles, three tenths of what a tile
holds. Imported only where triton is installed.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from trainer.models.fast.kernels.triton_gelu import share_and_slope

PIECE, WARPS = 1024, 4  # columns of a program, and its warps
SILU, GELU, TANH = 0, 1, 2
KINDS = {"silu": SILU, "gelu": GELU, "tanh": TANH}


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def gated_backward(joint, gradient, width, PIECE: tl.constexpr, KIND: tl.constexpr):  # type: ignore  # noqa: N803
    """Compute act(gate) * up once more, and the gradients by gate and up, of PIECE columns of a row.

    Args:
        joint: pointer to gate and up side by side, (tokens, 2 width), contiguous; their gradients are written there.
        gradient: pointer to the gradient by act(gate) * up, (tokens, width), contiguous; that value is written there.
        width: columns of the gate.
        PIECE: columns of a program, a power of two.
        KIND: of KINDS.
    """
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * PIECE + tl.arange(0, PIECE)
    inside = column < width
    at_gate, at_value = row * 2 * width + column, row * width + column
    gate = tl.load(joint + at_gate, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(joint + at_gate + width, mask=inside, other=0.0).to(tl.float32)
    above = tl.load(gradient + at_value, mask=inside, other=0.0).to(tl.float32)
    if KIND == 0:
        share = 1.0 / (1.0 + tl.exp(-gate))
        slope = share * (1.0 + gate * (1.0 - share))
    else:
        share, slope = share_and_slope(gate, KIND == 2)
    value = gate * share
    kind = joint.dtype.element_ty
    tl.store(joint + at_gate, (above * up * slope).to(kind), mask=inside)
    tl.store(joint + at_gate + width, (above * value).to(kind), mask=inside)
    tl.store(gradient + at_value, (value * up).to(kind), mask=inside)


def backward_over(joint: Any, gradient: Any, kind: str) -> None:
    """Write the gradient by the joint projection over it, and act(gate) * up over the gradient by that.

    Args:
        joint: gate and up side by side, (tokens, 2 width), contiguous.
        gradient: (tokens, width), contiguous, of the same dtype.
        kind: a key of KINDS.
    """
    tokens, width = gradient.shape
    grid = (tokens, triton.cdiv(width, PIECE))
    gated_backward[grid](joint, gradient, width, PIECE=PIECE, KIND=KINDS[kind], num_warps=WARPS)
