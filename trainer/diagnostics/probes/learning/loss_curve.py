"""Sixty fp32 steps of a small network: the losses on a device next to those of the CPU in fp64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.device.compiler_import import avoid_compiler_import
from trainer.diagnostics.probes import numerics

if TYPE_CHECKING:
    import torch

STEPS, ROWS, CLASSES = 60, 32, 5


def losses(device: str, dtype: torch.dtype, seed: int) -> list[float]:
    """Train from weights and data that `seed` decides, and return the loss before each step.

    Weights and data are drawn on the CPU in fp64 and rounded to `dtype`, so that every device starts alike.

    Args:
        device: device of torch, such as "cuda" or "cpu".
        dtype: number format of weights, data and steps.
        seed: seed of weights and data.
    """
    import torch
    from torch.nn import functional

    torch.manual_seed(seed)
    model = network().double()
    inputs = torch.randn(ROWS, 3, 8, 8, dtype=torch.float64)
    labels = torch.randint(CLASSES, (ROWS,))
    model, inputs, labels = model.to(device, dtype), inputs.to(device, dtype), labels.to(device)
    avoid_compiler_import()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return [float(loss) for loss in found]


def network() -> torch.nn.Module:
    """Return the network: convolution, two kinds of norm, GELU, products; no dropout, so that nothing is drawn."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 32),
        nn.LayerNorm(32),
        nn.GELU(),
        nn.Linear(32, CLASSES),
    )


def largest_gap(found: list[float], reference: list[float]) -> float:
    """Return the largest difference of two curves in units of the reference's first loss; NaN where one has a NaN."""
    return numerics.worst(abs(one - other) / reference[0] for one, other in zip(found, reference, strict=True))
