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
def nf4_pairs(packed, scales, levels, outputs, count, BYTES: tl.constexpr, PIECE: tl.constexpr, KIND: tl.constexpr):  # type: ignore  # noqa: N803
    """Dequantise PIECE bytes.

    Args:
        packed: pointer to `count` bytes of two codes, the first in the upper half.
        scales: pointer to the scale of each block, fp32.
        levels: pointer to the 16 levels, fp32.
        outputs: pointer to `count` int32, written: the first value in the lower half, as memory has it.
        count: of bytes.
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
    tl.store(outputs + place, (first & 0xFFFF) | (second << 16), mask=inside)


def dequantized(packed: Any, scales: Any, shape: torch.Size, dtype: torch.dtype, out: Any = None) -> Any:
    """Return what `nf4.dequantize` returns; that does it for values of other than 16 bits, and for an odd number.

    Args:
        packed: two codes of 4 bits in each byte, uint8.
        scales: scale of each block, fp32.
        shape: shape of the weight.
        dtype: type of the result.
        out: takes the result, contiguous and at an address that 4 divides; None for a new tensor.
    """
    if dtype.itemsize != 2 or shape.numel() % 2:
        return dequantize(packed, scales, shape, dtype, out)
    outputs = torch.empty(shape, dtype=dtype, device=packed.device) if out is None else out
    kind = tl.bfloat16 if dtype == torch.bfloat16 else tl.float16
    how = {"BYTES": BLOCK // 2, "PIECE": PIECE, "KIND": kind, "num_warps": WARPS}
    pairs, grid = outputs.view(-1).view(torch.int32), (triton.cdiv(len(packed), PIECE),)
    nf4_pairs[grid](packed, scales, _levels(packed.device), pairs, len(packed), **how)
    return outputs


@cache
def _levels(device: torch.device) -> Any:
    return torch.tensor(LEVELS, device=device)
