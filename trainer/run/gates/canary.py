"""A Triton kernel that writes 3 x + 1; imported only where triton is installed."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

PIECE = 256  # numbers of a program


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def tripled(source, target, count, PIECE: tl.constexpr):  # type: ignore  # noqa: N803
    """Write 3 x + 1 of each number; one Triton program for each PIECE of them.

    Args:
        source: pointer to `count` numbers in fp32.
        target: pointer to as many, written.
        count: how many numbers.
        PIECE: numbers of a program, a power of two.
    """
    place = tl.program_id(0) * PIECE + tl.arange(0, PIECE)
    inside = place < count
    tl.store(target + place, 3 * tl.load(source + place, mask=inside) + 1, mask=inside)


def launch(source: Any, target: Any) -> None:
    """Run the kernel.

    Args:
        source: numbers in fp32, one dimension.
        target: as many, written.
    """
    count = source.numel()
    tripled[(triton.cdiv(count, PIECE),)](source, target, count, PIECE=PIECE)
