"""A Triton kernel that dequantises 4-bit weights: two values of 16 bits, written as one number of 32.

A compiled graph reads each byte, its level and its scale once for each of the two values and takes the even and the
odd ones apart by masks. Imported only where triton is installed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from trainer.models.adapters.nf4 import BLOCK, LEVELS, dequantize

PIECE, WARPS = 2048, 4  # bytes of a program, and its warps


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def nf4_pairs(  # type: ignore  # noqa: PLR0913, PLR0917
    packed,
    scales,
    levels,
    outputs,
    count,
    WIDTH: tl.constexpr,  # noqa: N803
    ROW: tl.constexpr,  # noqa: N803
    BYTES: tl.constexpr,  # noqa: N803
    PIECE: tl.constexpr,  # noqa: N803
    KIND: tl.constexpr,  # noqa: N803
):
    """Dequantise PIECE bytes.

    Args:
        packed: pointer to `count` bytes of two codes, the first in the upper half.
        scales: pointer to the scale of each block, fp32.
        levels: pointer to the 16 levels, fp32.
        outputs: pointer to `count` int32, written: the first value in the lower half, as memory has it.
        count: of bytes.
        WIDTH: bytes of a row of the weight.
        ROW: int32 from one row of `outputs` to the next.
        BYTES: that share a scale.
        PIECE: bytes of a program, a power of two.
        KIND: dtype of the values, of 16 bits.
    """
    place = tl.program_id(0).to(tl.int64) * PIECE + tl.arange(0, PIECE)
    inside = place < count
    codes = tl.load(packed + place, mask=inside, other=0).to(tl.int32)
    scale = tl.load(scales + place // BYTES, mask=inside, other=0.0)
    first = (tl.load(levels + (codes >> 4)) * scale).to(KIND).to(tl.int16, bitcast=True).to(tl.int32)
    second = (tl.load(levels + (codes & 15)) * scale).to(KIND).to(tl.int16, bitcast=True).to(tl.int32)
    target = place if WIDTH == ROW else place // WIDTH * ROW + place % WIDTH
    tl.store(outputs + target, (first & 0xFFFF) | (second << 16), mask=inside)


def dequantized(packed: Any, scales: Any, shape: torch.Size, dtype: torch.dtype, out: Any = None) -> Any:
    """Return what `nf4.dequantize` returns; that does it for values of other than 16 bits, and for an odd number.

    Args:
        packed: two codes of 4 bits in each byte, uint8.
        scales: scale of each block, fp32.
        shape: shape of the weight.
        dtype: type of the result.
        out: takes the result, (outputs, inputs), of which rows may lie apart; None for a new tensor.
    """
    width = shape[-1]
    if dtype.itemsize != 2 or width % 2 or not (out is None or _in_pairs(out)):
        return dequantize(packed, scales, shape, dtype, out)
    outputs = torch.empty(shape, dtype=dtype, device=packed.device) if out is None else out
    kind = tl.bfloat16 if dtype == torch.bfloat16 else tl.float16
    where = {"WIDTH": width // 2, "ROW": outputs.stride(0) // 2}
    how = {"BYTES": BLOCK // 2, "PIECE": PIECE, "KIND": kind, "num_warps": WARPS}
    grid = (triton.cdiv(len(packed), PIECE),)
    nf4_pairs[grid](packed, scales, _levels(packed.device), outputs.view(torch.int32), len(packed), **where, **how)
    return outputs


def _in_pairs(out: Any) -> bool:
    """Return whether each row of two values a number begins where a number of 32 bits may."""
    return bool(out.dim() == 2 and out.stride(1) == 1 and out.stride(0) % 2 == 0 and out.storage_offset() % 2 == 0)


@cache
def _levels(device: torch.device) -> Any:
    return torch.tensor(LEVELS, device=device)
