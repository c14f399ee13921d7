"""Frozen weights in 4-bit NormalFloat (Dettmers et al. 2023, QLoRA, arXiv 2305.14314, appendix E).

Values, block layout and packing are those of bitsandbytes; a test compares every bit with it. Plain torch: no kernel
of another package decides whether the values are right on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

BLOCK = 64  # weights that share a scale
# Quantiles of the normal distribution, with 0 among them, scaled to [-1, 1].
LEVELS = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)


# Weights that are quantised at a time, multiples of BLOCK: they stay in a processor's cache, or are enough for a card,
# whose calls take longer to begin than to compute few.
PIECE, PIECE_ON_CARD = 2**16, 2**22
CELLS = 64  # of [-1, 1] in a table: each holds one boundary between two levels at most


def quantize(weight: Tensor, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return two codes a byte (the first in the upper half), and the largest magnitude of each block in fp32.

    Blocks run along the flattened weight; the last one may be short.

    Args:
        weight: of any shape.
        device: where it is computed and where the result is; None for the weight's own. A card takes a weight of the
            host piece by piece, so that no whole one is on it, and gives the host's bits: the gate `nf4` compares them.
    """
    device = device or weight.device
    tables = _tables(device)
    pieces = weight.detach().reshape(-1).split(PIECE if device.type == "cpu" else PIECE_ON_CARD)
    packed, scales = zip(*(_packed(piece.to(device), tables) for piece in pieces), strict=True)
    return torch.cat(packed), torch.cat(scales)


def _packed(piece: Tensor, tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return a piece's codes, two a byte, and its scales; only the last piece may have an odd number of weights."""
    codes, scales = _quantized(piece, tables)
    codes = functional.pad(codes[: len(piece)], (0, len(piece) % 2), value=7)  # 7 is the code of 0
    return (codes[0::2] << 4) | codes[1::2], scales


def _quantized(piece: Tensor, tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the codes of whole blocks, one a byte, and their scales."""
    flat = piece.float()
    blocks = functional.pad(flat, (0, -len(flat) % BLOCK)).view(-1, BLOCK)
    scales = blocks.abs().amax(dim=1)
    relative = (blocks / scales.where(scales > 0, 1.0).unsqueeze(1)).view(-1)
    relative.nan_to_num_(1.0).clamp_(-1, 1)  # of a block with numbers that are not finite; it stays so by its scale
    cells, (below, boundary) = _cells(relative), tables
    return below.index_select(0, cells) + (relative > boundary.index_select(0, cells)), scales


def _tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return, for each cell, how many boundaries are in cells before it, and the boundary in it (2 without one).

    The code of a number is the number of boundaries below it. Its cell grows with it, so boundaries in cells before
    count, those in cells after do not, and the one in its own is compared: the same code as by a search among all,
    which took four times as long.
    """
    with torch.device("cpu"):  # also where a model is made on another default device, as meta, which has no numbers
        levels = torch.tensor(LEVELS)
        below, boundary = torch.zeros(CELLS, dtype=torch.uint8), torch.full((CELLS,), 2.0)
    boundaries = (levels[1:] + levels[:-1]) / 2
    cells = _cells(boundaries).tolist()
    assert len(set(cells)) == len(cells), "two boundaries in one cell"
    for cell, value in zip(cells, boundaries, strict=True):
        boundary[cell] = value
        below[cell + 1 :] += 1
    return below.to(device), boundary.to(device)


def _cells(relative: Tensor) -> Tensor:
    """Return the cell of each number of [-1, 1]."""
    return ((relative + 1) * ((CELLS - 1) / 2)).int()


def _room(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return codes and scales of the sizes that `quantize` returns, all 0."""
    count, device = weight.numel(), weight.device
    packed = torch.zeros(-(-count // 2), dtype=torch.uint8, device=device)
    return packed, torch.zeros(-(-count // BLOCK), dtype=torch.float32, device=device)


def dequantize(
    packed: Tensor, scales: Tensor, shape: torch.Size, dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """Return the weight that the codes stand for: level times scale in fp32, rounded to `dtype`.

    Args:
        packed: two codes of 4 bits in each byte, uint8.
        scales: scale of each block, fp32.
        shape: shape of the weight.
        dtype: type of the result.
        out: takes the result, of that shape and dtype, of which rows may lie apart; None for a new tensor.
    """
    levels = torch.tensor(LEVELS, device=packed.device)
    codes = torch.stack([packed >> 4, packed & 15], dim=1).view(-1)[: shape.numel()].long()
    values = functional.pad(levels[codes], (0, -shape.numel() % BLOCK)).view(-1, BLOCK) * scales.unsqueeze(1)
    made = values.view(-1)[: shape.numel()].view(shape)
    return made.to(dtype) if out is None else out.copy_(made)


class NF4Linear(nn.Module):
    """A frozen linear layer whose weight is held in 4 bits: (…, inputs) to (…, outputs).

    The dense weight exists only within the product, and again in the backward pass.
    """

    constant = True  # its buffers never change: neither a checkpoint nor an undone step needs copies of them
    packed: Tensor
    scales: Tensor
    bias: Tensor | None
    held: Tensor | None

    def __init__(self, base: nn.Linear, *, empty: bool = False) -> None:
        """Hold the weight of `base` in 4 bits; `empty`: room for one, all zeros, where `load` follows."""
        super().__init__()
        self.in_features, self.out_features, self.dtype = base.in_features, base.out_features, base.weight.dtype
        packed, scales = _room(base.weight) if empty else quantize(base.weight)
        self.register_buffer("packed", packed)
        self.register_buffer("scales", scales)
        self.register_buffer("bias", None if base.bias is None else base.bias.detach())
        self.register_buffer("held", None, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> NF4Linear:
        """Move with the model; scales stay in fp32 when the model is cast."""
        scales = self.scales
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.scales.dtype != scales.dtype:
            self.scales = scales.to(self.scales.device)
        return self

    @torch.no_grad()
    def load(self, weight: Tensor, device: torch.device | None = None) -> None:
        """Take over a dense weight (outputs, inputs), quantised on a device, None for the weight's own."""
        packed, scales = quantize(weight, device)
        self.packed.copy_(packed)
        self.scales.copy_(scales)

    @torch.no_grad()
    def hold_dense(self, dtype: torch.dtype) -> None:
        """Hold the dequantised weight, too: the same values without dequantising at each use, for more memory."""
        self.held = dequantize(self.packed, self.scales, torch.Size((self.out_features, self.in_features)), dtype)

    @property
    def device(self) -> torch.device:
        """Where the weight is."""
        return self.packed.device

    def dense(self, dtype: torch.dtype, by: Callable[..., Tensor] = dequantize, out: Tensor | None = None) -> Tensor:
        """Return the weight (outputs, inputs).

        Args:
            dtype: type of the result.
            by: function that computes what `dequantize` does.
            out: takes the result; None for a new tensor.
        """
        if self.held is not None:
            return self.held.to(dtype) if out is None else out.copy_(self.held)
        return by(self.packed, self.scales, torch.Size((self.out_features, self.in_features)), dtype, out)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return inputs times the dequantised weight, plus the bias."""
        kind = inputs.device.type
        if torch.is_autocast_enabled(kind):
            inputs = inputs.to(torch.get_autocast_dtype(kind))
        product: Any = _Product.apply
        outputs: Tensor = product(inputs, self)
        return outputs if self.bias is None else outputs + self.bias.to(outputs.dtype)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layer: NF4Linear) -> Tensor:
        ctx.layer = layer
        with torch.autocast(inputs.device.type, enabled=False):
            return functional.linear(inputs, layer.dense(inputs.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        (gradient,) = gradients
        with torch.autocast(gradient.device.type, enabled=False):
            return gradient @ ctx.layer.dense(gradient.dtype), None


def hold_dense(model: nn.Module, dtype: torch.dtype) -> None:
    """Have each 4-bit layer of a model hold its dequantised weight in `dtype`.

    Args:
        model: model on the host, changed in place.
        dtype: of the weights that are held: that of the products.
    """
    for module in model.modules():
        if isinstance(module, NF4Linear):
            module.hold_dense(dtype)


def quantize_linear_layers(model: nn.Module, names: list[str], *, empty: bool = False) -> None:
    """Replace the named dense layers by their 4-bit form.

    Args:
        model: model on the host, changed in place.
        names: names of its layers.
        empty: without their weights, where others are loaded.
    """
    for name in names:
        parent, _, leaf = name.rpartition(".")
        holder = model.get_submodule(parent)
        setattr(holder, leaf, NF4Linear(getattr(holder, leaf), empty=empty))
