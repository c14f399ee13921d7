"""Muon: momentum whose matrices are orthogonalised by five steps of Newton and Schulz; AdamW for all other weights.

Method and coefficients: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon/. Updates are scaled to the size of AdamW's, 0.2 sqrt(max(rows, columns)), so
that one learning rate and one weight decay serve both: Liu et al., "Muon is Scalable for LLM Training", 2025,
arXiv 2502.16982.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
MOMENTUM = 0.95
MATCHED = 0.2  # root mean square of AdamW's updates in practice (arXiv 2502.16982, section 2.2)
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of AdamW


class Muon(torch.optim.Optimizer):
    """Groups have `matrices`: whether Muon takes their weights, all of two dimensions, or AdamW.

    products: number format of the orthogonalisation.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, *, products: torch.dtype = torch.float32) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0, "matrices": False})
        self.products = products

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with the gradients as they are; states are made before any weight changes."""
        loss = None if closure is None else closure()
        for group, weight in self._weights():
            if not self.state[weight]:
                self.state[weight] = _fresh(weight, matrices=group["matrices"])
        for group, weight in self._weights():
            if group["matrices"]:
                self._matrix(group, weight)
            else:
                adamw_step(weight, self.state[weight], lr=group["lr"], weight_decay=group["weight_decay"])
        return loss

    def reserve(self) -> list[Tensor]:
        """Return memory that the next step takes: states that are not there, and the largest weight's temporaries."""
        weights = [(group, weight) for group in self.param_groups for weight in group["params"]]
        missing = [(group, weight) for group, weight in weights if not self.state.get(weight)]
        held = [torch.empty_like(weight) for group, weight in missing for _ in range(1 if group["matrices"] else 2)]
        largest = max((weight for _, weight in weights), key=Tensor.numel)
        return held + [torch.empty_like(largest) for _ in range(4)]

    def _weights(self) -> list[tuple[dict[str, Any], Tensor]]:
        return [(group, each) for group in self.param_groups for each in group["params"] if each.grad is not None]

    def _matrix(self, group: dict[str, Any], weight: Tensor) -> None:
        momentum = self.state[weight]["momentum"]
        assert weight.grad is not None
        momentum.lerp_(weight.grad, 1 - MOMENTUM)
        update = orthogonalised(weight.grad.lerp(momentum, MOMENTUM), self.products)
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.add_(update.to(weight.dtype), alpha=-group["lr"] * MATCHED * math.sqrt(max(weight.shape)))


def _fresh(weight: Tensor, *, matrices: bool) -> dict[str, Any]:
    if matrices:
        return {"momentum": torch.zeros_like(weight)}
    return {"step": 0, "exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}


def orthogonalised(update: Tensor, products: torch.dtype) -> Tensor:
    """Return a matrix of the same singular vectors whose singular values are near 1 (0.7 to 1.2).

    Args:
        update: (rows, columns).
        products: number format that it is computed in, and that of the result.
    """
    a, b, c = COEFFICIENTS
    matrix: Tensor = update.to(products)
    tall = matrix.shape[0] > matrix.shape[1]
    matrix = matrix.mT if tall else matrix
    matrix = matrix / (matrix.norm() + 1e-7)
    for _ in range(STEPS):
        square = matrix @ matrix.mT
        matrix = a * matrix + (b * square + c * square @ square) @ matrix
    return matrix.mT if tall else matrix


def adamw_step(weight: Tensor, state: dict[str, Any], *, lr: float, weight_decay: float) -> None:
    """Take AdamW's step of one weight (Loshchilov and Hutter 2019, arXiv 1711.05101), in place.

    Args:
        weight: with its gradient.
        state: step, exp_avg and exp_avg_sq, changed in place.
        lr: step size.
        weight_decay: share of the weight, times `lr`, that is taken off.
    """
    assert weight.grad is not None
    (beta1, beta2), mean, square = BETAS, state["exp_avg"], state["exp_avg_sq"]
    state["step"] += 1
    mean.lerp_(weight.grad, 1 - beta1)
    square.mul_(beta2).addcmul_(weight.grad, weight.grad, value=1 - beta2)
    deviation = square.sqrt().div_(math.sqrt(1 - beta2 ** state["step"])).add_(EPSILON)
    weight.mul_(1 - lr * weight_decay)
    weight.addcdiv_(mean, deviation, value=-lr / (1 - beta1 ** state["step"]))
