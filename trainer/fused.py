"""The optimizer's step as the one kernel that it is in the end, without the Python around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

KERNEL = getattr(torch, "_fused_adamw_", None)


@dataclass(frozen=True, kw_only=True)
class Hyper:
    """What AdamW's kernel takes: weights, their moments and step counts, and the numbers."""

    weights: list[Tensor]
    means: list[Tensor]
    squares: list[Tensor]
    steps: list[Tensor]
    numbers: dict[str, Any]

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> Hyper:
        """Look all up anew: a checkpoint that was loaded has replaced the moments."""
        (group,) = optimizer.param_groups
        states = [optimizer.state[weight] for weight in group["params"]]
        beta1, beta2 = group["betas"]
        same = {name: group[name] for name in ("lr", "weight_decay", "eps", "amsgrad", "maximize")}
        return cls(
            weights=[weight.detach() for weight in group["params"]],
            means=[state["exp_avg"] for state in states],
            squares=[state["exp_avg_sq"] for state in states],
            steps=[state["step"] for state in states],
            numbers=same | {"beta1": beta1, "beta2": beta2},
        )


def why_not(optimizer: torch.optim.Optimizer) -> str | None:
    """Return why this optimizer's step is not that one kernel, or None where it is."""
    if KERNEL is None:
        return f"torch {torch.__version__} has no fused AdamW"
    if type(optimizer) is not torch.optim.AdamW or len(optimizer.param_groups) != 1:
        return "the optimizer is not AdamW over all weights"
    (group,) = optimizer.param_groups
    if not group["fused"] or group["amsgrad"] or isinstance(group["lr"], Tensor):
        return "AdamW is not the fused one"
    return None


class FusedSteps:
    """AdamW's steps with gradients that always lie in the same place.

    All weights have taken equally many steps, so one count serves for all while it runs, and `end` writes it back.
    """

    def __init__(self, hyper: Hyper, gradients: Sequence[Tensor]) -> None:
        assert KERNEL is not None
        self._count, self._steps, self._taken = hyper.steps[0].clone(), hyper.steps, 0
        counts = [self._count] * len(hyper.weights)
        self._kernel = partial(
            KERNEL, hyper.weights, list(gradients), hyper.means, hyper.squares, [], counts, **hyper.numbers
        )

    def take(self) -> None:
        """Take one step with the gradients as they are now."""
        self._count.add_(1)
        self._kernel()
        self._taken += 1

    def end(self) -> None:
        """Make the optimizer's state that after the steps taken."""
        torch._foreach_add_(self._steps, self._taken)
