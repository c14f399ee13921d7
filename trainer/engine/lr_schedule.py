"""How the step size changes over a run, as a function of the step alone."""

from __future__ import annotations

import math

import torch


def schedule_of(name: str, optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler | None:
    """Return the schedule called `name` over `steps` steps: none, or half a cosine from the full size to 0."""
    if name == "constant":
        return None
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1 + math.cos(math.pi * min(step, steps) / steps)) / 2
    )
