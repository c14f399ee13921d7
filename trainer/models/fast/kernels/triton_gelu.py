"""Triton kernels of GELU and of its backward pass, which also sums the gradient of the bias before it.

A compiled graph forms the error function by a library's code of two branches, and reads the gradient once more for
the bias. Here the error function is a polynomial whose error (1.5e-7) is far below the rounding of 16 bits, and each
program adds up its own rows. On an H200, 65,536 x 3,072 in bf16: 0.22 in place of 0.31 ms forward, 0.45 in place of
0.54 backward, where copying the tensor takes 0.19. Imported only where triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

PIECE, COLUMNS, ROWS, WARPS = 4096, 1024, 128, 4  # elements of a forward program; columns and rows of a backward one


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def share_and_slope(x, TANH: tl.constexpr):  # type: ignore  # noqa: N803
    """Return gelu(x) / x and the derivative of gelu at x.

    Args:
        x: inputs in fp32.
        TANH: whether GELU is the approximation by tanh.
    """
    if TANH:
        cube = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        share = 1.0 / (1.0 + tl.exp(-2.0 * cube))
        inner = 1.5957691216057308 * (1.0 + 0.134145 * x * x)
        slope = share + x * share * (1.0 - share) * inner
    else:  # Abramowitz and Stegun, 7.1.26
        z = tl.abs(x) * 0.7071067811865476
        t = 1.0 / (1.0 + 0.3275911 * z)
        bell = tl.exp(-z * z)
        sum_ = (((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592
        tail = 0.5 * bell * t * sum_
        share = tl.where(x >= 0, 1.0 - tail, tail)
        slope = share + x * bell * 0.3989422804014327
    return share, slope


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def gelu_forward(inputs, outputs, count, PIECE: tl.constexpr, TANH: tl.constexpr):  # type: ignore  # noqa: N803
    """Compute GELU of PIECE elements.

    Args:
        inputs: pointer to `count` elements.
        outputs: pointer to as many, written.
        count: of elements.
        PIECE: elements of a program, a power of two.
        TANH: whether GELU is the approximation by tanh.
    """
    place = tl.program_id(0).to(tl.int64) * PIECE + tl.arange(0, PIECE)
    inside = place < count
    x = tl.load(inputs + place, mask=inside, other=0.0).to(tl.float32)
    share, _ = share_and_slope(x, TANH)
    tl.store(outputs + place, (x * share).to(outputs.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def gelu_backward(  # type: ignore  # noqa: PLR0913, PLR0917 -- a kernel has its pointers and sizes one by one
    inputs,
    upstream,
    again,
    gradient,
    sums,
    tokens,
    width,
    ROWS: tl.constexpr,  # noqa: N803
    COLUMNS: tl.constexpr,  # noqa: N803
    TANH: tl.constexpr,  # noqa: N803
):
    """Compute GELU once more, its gradient, and the sum of that over ROWS rows; a program has COLUMNS columns.

    Args:
        inputs: pointer to (tokens, width), contiguous.
        upstream: pointer to the gradient by the outputs, likewise.
        again: pointer to the outputs, likewise, written.
        gradient: pointer to the gradient by the inputs, likewise, written.
        sums: pointer to (rows of programs, width) in fp32, written.
        tokens: rows.
        width: of a row.
        ROWS: rows of a program.
        COLUMNS: of a program, a power of two.
        TANH: whether GELU is the approximation by tanh.
    """
    tile, columns = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there, rows = columns < width, tl.zeros((COLUMNS,), tl.int64) + tile * ROWS
    total = tl.zeros((COLUMNS,), tl.float32)
    for step in range(0, ROWS):
        row = rows + step
        place, inside = row * width + columns, there & (row < tokens)
        x = tl.load(inputs + place, mask=inside, other=0.0).to(tl.float32)
        above = tl.load(upstream + place, mask=inside, other=0.0).to(tl.float32)
        share, slope = share_and_slope(x, TANH)
        found = (above * slope).to(gradient.dtype.element_ty)
        tl.store(gradient + place, found, mask=inside)
        tl.store(again + place, (x * share).to(again.dtype.element_ty), mask=inside)
        total += found.to(tl.float32)
    tl.store(sums + tile.to(tl.int64) * width + columns, total, mask=there)


def forward(inputs: Any, *, tanh: bool) -> Any:
    """Return GELU of (tokens, width), in the same dtype.

    Args:
        inputs: contiguous.
        tanh: whether GELU is the approximation by tanh.
    """
    outputs = torch.empty_like(inputs)
    grid = (triton.cdiv(inputs.numel(), PIECE),)
    gelu_forward[grid](inputs, outputs, inputs.numel(), PIECE=PIECE, TANH=tanh, num_warps=WARPS)
    return outputs


def backward(inputs: Any, upstream: Any, *, tanh: bool) -> tuple[Any, Any, Any]:
    """Return GELU once more, the gradient by `inputs`, and the sum of that over all rows in fp32, (width,).

    Args:
        inputs: (tokens, width), contiguous.
        upstream: the gradient by GELU's outputs, shaped likewise.
        tanh: whether GELU is the approximation by tanh.
    """
    tokens, width = inputs.shape
    again, gradient = torch.empty_like(inputs), torch.empty_like(inputs)
    grid = (triton.cdiv(tokens, ROWS), triton.cdiv(width, COLUMNS))
    sums = torch.empty(grid[0], width, dtype=torch.float32, device=inputs.device)
    how = {"ROWS": ROWS, "COLUMNS": COLUMNS, "TANH": tanh, "num_warps": WARPS}
    gelu_backward[grid](inputs, upstream, again, gradient, sums, tokens, width, **how)
    return again, gradient, sums.sum(0)
