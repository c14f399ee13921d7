"""Elementwise operations of adapted blocks over 4-bit weights, these dequantised by an own Triton kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor, nn

from trainer.models.adapters.nf4 import NF4Linear
from trainer.models.fast import elementwise, own_gelu


def there(blocks: Iterable[nn.Module], dtype: torch.dtype) -> bool:
    """Return whether there is something for the kernel to do, and Triton to compile it.

    Args:
        blocks: of the decoder.
        dtype: of the products.
    """
    held = any(isinstance(module, NF4Linear) and module.held is None for block in blocks for module in block.modules())
    return held and dtype.itemsize == 2 and own_gelu.there()


def elementwise_of() -> elementwise.Elementwise:
    """Return the compiled operations, with the kernel in the place of the compiled dequantisation."""
    return replace(elementwise.compiled(), name="compiled elementwise, own NF4", dequantize=dequantized)


def dequantized(
    packed: Tensor, scales: Tensor, shape: torch.Size, dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """Return what `nf4.dequantize` does, by the kernel.

    Args:
        packed: two codes of 4 bits in each byte, uint8.
        scales: scale of each block, fp32.
        shape: shape of the weight.
        dtype: type of the result.
        out: takes the result, of which rows may lie apart; None for a new tensor.
    """
    from trainer.models.fast.kernels import triton_nf4

    made: Tensor = triton_nf4.dequantized(packed, scales, shape, dtype, out)
    return made
