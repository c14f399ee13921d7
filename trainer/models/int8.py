"""Linear layers whose weights are whole numbers of 8 bits; inputs become such numbers as they come, row by row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MOST = 127


class Int8Linear(nn.Module):
    """A Linear layer with int8 weights (outputs, inputs) and one scale for each output: (rows, inputs) to outputs.

    Each input row is scaled by its own largest value, rounded to int8, multiplied in whole numbers, and scaled back:
    dynamic quantization, symmetric, without calibration data.
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(outputs, inputs, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(outputs))
        self.register_buffer("bias", torch.zeros(outputs))

    @classmethod
    def of(cls, layer: nn.Linear) -> Int8Linear:
        """Return `layer` quantized to the nearest whole numbers."""
        made = cls(layer.in_features, layer.out_features)
        weight = layer.weight.detach().float().cpu()
        made.scale.copy_(_scale(weight).squeeze(1))
        made.weight.copy_(torch.round(weight / made.scale.unsqueeze(1)).to(torch.int8))
        if layer.bias is not None:
            made.bias.copy_(layer.bias.detach().float().cpu())
        return made

    def forward(self, rows: Tensor) -> Tensor:
        """Return (…, outputs) for (…, inputs): rows, or each token of a row."""
        steps = _scale(rows)
        whole = torch.round(rows / steps)
        return int8_product(whole, self.weight) * steps * self.scale + self.bias


def _scale(values: Tensor) -> Tensor:
    """Return the step of each row, (…, 1): its largest value is MOST steps."""
    return values.abs().amax(dim=-1, keepdim=True).clamp_min(1e-12) / MOST


def int8_product(whole: Tensor, weight: Tensor) -> Tensor:
    """Return `whole` (…, inputs), whole numbers up to MOST, times `weight` (outputs, inputs) turned, as floats.

    Floats hold these products exactly up to 1,040 inputs (127 * 127 * 1,040 < 2^24), on every device alike. torch's
    own int8 product, torch._int_mm, is not taken: on the CPU of torch 2.13.0 it is wrong for one input (measured).
    """
    return whole @ weight.t().to(whole.dtype)


def quantized(network: nn.Module) -> nn.Module:
    """Return `network` with every Linear layer inside it replaced, in place; a lone Linear is replaced itself."""
    if isinstance(network, nn.Linear):
        return Int8Linear.of(network)
    for name, child in network.named_children():
        setattr(network, name, quantized(child))
    return network
