"""A Triton kernel of rows' cross entropy: losses, and the gradient written over the logits.

A row is read in pieces, twice; the second read comes from the second-level cache as a rule. A row held in registers,
read once, was slower on an H200 (0.26 against 0.18 ms for 2,048 rows of 50,304) and spills on every AMD architecture.
Imported only where triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

PIECE, WARPS = 4096, 8  # elements and warps of a program: no spilled register on any architecture that compiles it


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def softmax_rows(logits, labels, scales, losses, stride, vocabulary, ignored, PIECE: tl.constexpr):  # type: ignore  # noqa: N803
    """Compute one row of losses and write its gradient over the logits; one Triton program a row.

    Maximum and sum are carried along from piece to piece (Milakov and Gimelshein, arXiv 1805.02867).

    Args:
        logits: pointer to (tokens, vocabulary), overwritten with gradients times `scales`.
        labels: pointer to token ids, (tokens,).
        scales: pointer to each token's factor of the gradient, (tokens,).
        losses: pointer to (tokens,) in fp32, written; 0 where a label is ignored.
        stride: elements from one row of `logits` to the next.
        vocabulary: elements of a row.
        ignored: label of a token without loss and gradient.
        PIECE: elements read at a time, a power of two.
    """
    row = tl.program_id(0).to(tl.int64)
    begin = logits + row * stride
    label = tl.load(labels + row)
    there = label != ignored
    target = tl.load(begin + tl.where(there, label, 0)).to(tl.float32)  # before the first store of any warp
    most = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for first in range(0, vocabulary, PIECE):
        place = first + tl.arange(0, PIECE)
        values = tl.load(begin + place, mask=place < vocabulary, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(values, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(values - larger), 0)
        most = larger
    log = tl.log(total) + most
    tl.store(losses + row, tl.where(there, log - target, 0.0))
    scale = tl.where(there, tl.load(scales + row), 0.0)
    for first in range(0, vocabulary, PIECE):
        place = first + tl.arange(0, PIECE)
        inside = place < vocabulary
        values = tl.load(begin + place, mask=inside, other=-float("inf")).to(tl.float32)
        gradient = (tl.exp(values - log) - tl.where(place == label, 1.0, 0.0)) * scale
        tl.store(begin + place, gradient.to(logits.dtype.element_ty), mask=inside)


def launch(logits: Any, labels: Any, scales: Any, losses: Any, *, ignored: int) -> None:
    """Run the kernel over all rows of `logits`.

    Args:
        logits: (tokens, vocabulary), contiguous within a row, overwritten with the gradient times `scales`.
        labels: token ids, (tokens,), contiguous.
        scales: each token's factor of the gradient, (tokens,), contiguous.
        losses: (tokens,) in fp32, written.
        ignored: label of a token without loss and gradient.
    """
    grid, stride, vocabulary = (logits.shape[0],), logits.stride(0), logits.shape[1]
    softmax_rows[grid](logits, labels, scales, losses, stride, vocabulary, ignored, PIECE=PIECE, num_warps=WARPS)


def compile_only(device: str) -> None:
    """Compile the kernel for the current card and run nothing. Raises what Triton's compiler raises.

    Args:
        device: torch's name of the kind of card.
    """
    logits, labels = torch.empty(1, 8, device=device), torch.zeros(1, dtype=torch.long, device=device)
    ones = torch.empty(1, device=device)
    softmax_rows.warmup(logits, labels, ones, ones, 8, 8, -1, PIECE=PIECE, num_warps=WARPS, grid=(1,))
