"""A layer for the retry through host memory: its weights, inputs and outputs are on the host; a card computes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Staged(nn.Module):
    """`layer`, its weights copied to `card` for each call, so that gradients arrive in host memory, too."""

    def __init__(self, layer: nn.Module, card: torch.device) -> None:
        super().__init__()
        self.layer, self.card = layer.cpu(), card

    def forward(self, rows: Tensor) -> Tensor:
        """Return the layer's output for `rows` (batch, feature), both in host memory."""
        there = {name: weight.to(self.card) for name, weight in self.layer.named_parameters()}
        output: Tensor = torch.func.functional_call(self.layer, there, (rows.to(self.card),))
        return output.cpu()
