"""Triton kernels of a row's cross entropy: loss, and the gradient written over the logits.

`row_at_once` holds the row in registers and reads it once. `row_in_pieces` is for rows that do not fit: it reads a row
twice, the second time from the cache as a rule. Imported only where triton is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

AT_ONCE = 65536  # elements of a row: 64 a thread with 1,024 threads


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def row_at_once(logits, labels, scales, losses, stride, vocabulary, ignored, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, N803, PLR0913, PLR0917, E501
    """One program a row: `logits` (tokens, vocabulary) become gradients times `scales` (tokens,)."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    inside = place < vocabulary
    begin = logits + row * stride
    label = tl.load(labels + row)
    there = label != ignored
    target = tl.load(begin + tl.where(there, label, 0)).to(tl.float32)
    values = tl.load(begin + place, mask=inside, other=-float("inf")).to(tl.float32)
    most = tl.max(values, 0)
    log = tl.log(tl.sum(tl.exp(values - most), 0)) + most
    tl.store(losses + row, tl.where(there, log - target, 0.0))
    scale = tl.where(there, tl.load(scales + row), 0.0)
    gradient = (tl.exp(values - log) - tl.where(place == label, 1.0, 0.0)) * scale
    tl.store(begin + place, gradient.to(logits.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def row_in_pieces(logits, labels, scales, losses, stride, vocabulary, ignored, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, N803, PLR0913, PLR0917, E501
    """The same in pieces of BLOCK; maximum and sum are carried along (Milakov and Gimelshein, arXiv 1805.02867)."""
    row = tl.program_id(0).to(tl.int64)
    begin = logits + row * stride
    label = tl.load(labels + row)
    there = label != ignored
    target = tl.load(begin + tl.where(there, label, 0)).to(tl.float32)
    most = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for first in range(0, vocabulary, BLOCK):
        place = first + tl.arange(0, BLOCK)
        values = tl.load(begin + place, mask=place < vocabulary, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(values, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(values - larger), 0)
        most = larger
    log = tl.log(total) + most
    tl.store(losses + row, tl.where(there, log - target, 0.0))
    scale = tl.where(there, tl.load(scales + row), 0.0)
    for first in range(0, vocabulary, BLOCK):
        place = first + tl.arange(0, BLOCK)
        inside = place < vocabulary
        values = tl.load(begin + place, mask=inside, other=-float("inf")).to(tl.float32)
        gradient = (tl.exp(values - log) - tl.where(place == label, 1.0, 0.0)) * scale
        tl.store(begin + place, gradient.to(logits.dtype.element_ty), mask=inside)


@dataclass(frozen=True, kw_only=True)
class Way:
    """A kernel with its block (elements; 0: the whole row) and warps."""

    kernel: Any
    block: int
    warps: int

    def block_of(self, vocabulary: int) -> int:
        """Return the block for rows of this length."""
        return self.block or triton.next_power_of_2(vocabulary)


def launch(way: Way, logits: Any, labels: Any, scales: Any, losses: Any, *, ignored: int) -> None:
    """Run a kernel over all rows of `logits`, which are overwritten."""
    vocabulary = logits.shape[1]
    kernel, block, warps = way.kernel, way.block_of(vocabulary), way.warps
    kernel[(logits.shape[0],)](
        logits, labels, scales, losses, logits.stride(0), vocabulary, ignored, BLOCK=block, num_warps=warps
    )


def ways(*, hip: bool) -> dict[str, Way]:
    """Return the forms that are tried, by name.

    With fewer and larger programs the rows at work fit into the second-level cache between the two reads. On AMD cards
    16 warps of 64 lanes are the 1,024 threads that a program may have.
    """
    sizes = ((8192, 8), (16384, 16)) if hip else ((8192, 8), (16384, 16), (32768, 32))
    found = {f"triton, pieces of {size:,}": Way(kernel=row_in_pieces, block=size, warps=warps) for size, warps in sizes}
    return found | {"triton, rows at once": Way(kernel=row_at_once, block=0, warps=16 if hip else 32)}
