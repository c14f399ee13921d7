"""A product of 16-bit matrices with results in fp32, written so by the library where it can."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

TOLERANCE = 1e-3  # of the trial, relative: a result rounded to bf16 on its way errs by 2e-3 and more


def product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Return left @ right in `dtype`.

    Rounded to 16 bits first where the library writes no other format. With fp32 written at once a gradient of an
    adapter is a kernel less, of which a small micro-batch has hundreds, and is not rounded twice.

    Args:
        left: (rows, shared).
        right: (shared, columns), of the same dtype.
        dtype: of the result.
    """
    if left.dtype.itemsize == 2 and dtype == torch.float32 and writes_wide(left.device, left.dtype):
        return torch.mm(left, right, out_dtype=dtype)
    return torch.mm(left, right).to(dtype)


@cache
def writes_wide(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether products of `dtype` come in fp32 on a device; a card is tried once.

    torch has it for cards from 2.8 on, for AMD's since pytorch PR 161540 and 162600; elsewhere it is refused.

    Args:
        device: of the matrices.
        dtype: of the matrices, of 16 bits.
    """
    return device.type == "cuda" and tried(device, dtype)


def tried(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether a product of few numbers comes in fp32, is right, and was not rounded on its way.

    Args:
        device: of the matrices.
        dtype: of the matrices, of 16 bits.
    """
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(size, generator=generator).to(dtype) for size in ((16, 64), (64, 24)))
    exact = left.double() @ right.double()
    try:
        found = torch.mm(left.to(device), right.to(device), out_dtype=torch.float32).cpu().double()
    except (RuntimeError, TypeError):
        return False
    return bool((found - exact).abs().max() <= TOLERANCE * exact.abs().max()) and not _is_rounded(found, dtype)


def _is_rounded(values: Tensor, dtype: torch.dtype) -> bool:
    return bool(torch.equal(values.to(dtype).double(), values))
