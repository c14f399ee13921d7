"""Triton kernels of a row's cross entropy: loss, and the gradient written over the logits.

`row_at_once` holds the row in registers and reads it once. `row_in_pieces` is for rows that do not fit: it reads a row
twice, the second time from the cache as a rule. Imported only where triton is installed.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

AT_ONCE = 65536  # elements of a row: 64 a thread with 1,024 threads
PIECE = 8192


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def row_at_once(logits, labels, scales, losses, stride, vocabulary, ignored, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, N803, PLR0913, PLR0917, E501
    """One program a row: `logits` (tokens, vocabulary) become gradients times `scales` (tokens,)."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    inside = place < vocabulary
    begin = logits + row * stride
    label = tl.load(labels + row)
    values = tl.load(begin + place, mask=inside, other=-float("inf")).to(tl.float32)
    most = tl.max(values, 0)
    powers = tl.exp(values - most)
    total = tl.sum(powers, 0)
    target = tl.sum(tl.where(place == label, values, 0.0), 0)
    there = label != ignored
    tl.store(losses + row, tl.where(there, tl.log(total) + most - target, 0.0))
    scale = tl.where(there, tl.load(scales + row), 0.0)
    gradient = (powers / total - tl.where(place == label, 1.0, 0.0)) * scale
    tl.store(begin + place, gradient.to(logits.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def row_in_pieces(logits, labels, scales, losses, stride, vocabulary, ignored, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, N803, PLR0913, PLR0917, E501
    """The same in pieces of BLOCK; maximum and sum are carried along (Milakov and Gimelshein, arXiv 1805.02867)."""
    row = tl.program_id(0).to(tl.int64)
    begin = logits + row * stride
    label = tl.load(labels + row)
    most = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    target = tl.full((), 0.0, tl.float32)
    for first in range(0, vocabulary, BLOCK):
        place = first + tl.arange(0, BLOCK)
        values = tl.load(begin + place, mask=place < vocabulary, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(values, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(values - larger), 0)
        target += tl.sum(tl.where(place == label, values, 0.0), 0)
        most = larger
    there = label != ignored
    log = tl.log(total) + most
    tl.store(losses + row, tl.where(there, log - target, 0.0))
    scale = tl.where(there, tl.load(scales + row), 0.0)
    for first in range(0, vocabulary, BLOCK):
        place = first + tl.arange(0, BLOCK)
        inside = place < vocabulary
        values = tl.load(begin + place, mask=inside, other=-float("inf")).to(tl.float32)
        gradient = (tl.exp(values - log) - tl.where(place == label, 1.0, 0.0)) * scale
        tl.store(begin + place, gradient.to(logits.dtype.element_ty), mask=inside)


def launch(kernel: Any, logits: Any, labels: Any, scales: Any, losses: Any, *, ignored: int, warps: int) -> None:
    """Run a kernel over all rows of `logits`, which are overwritten."""
    vocabulary = logits.shape[1]
    block = triton.next_power_of_2(vocabulary) if kernel is row_at_once else PIECE
    kernel[(logits.shape[0],)](
        logits, labels, scales, losses, logits.stride(0), vocabulary, ignored, BLOCK=block, num_warps=warps
    )
