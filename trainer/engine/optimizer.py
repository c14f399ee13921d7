"""The optimizer of a run: AdamW over the weights that are trained."""

from __future__ import annotations

import torch
from torch import nn


def adamw(model: nn.Module, learning_rate: float, *, fused: bool) -> torch.optim.AdamW:
    """Return the optimizer of the weights that are trained; `fused` is one kernel for all, on CPUs and cards alike.

    Args:
        model: network; weights that need no gradient are left out.
        learning_rate: step size.
        fused: use one kernel for all weights.
    """
    known = {weight.device.type for weight in model.parameters()} <= {"cpu", "cuda"}
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return torch.optim.AdamW(trained, lr=learning_rate, fused=(fused and known) or None)
