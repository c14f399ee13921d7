"""AdamW's step as the one kernel that it ends in, without the Python around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

KERNEL = getattr(torch, "_fused_adamw_", None)
LINE = 64  # bytes of a cache line: where torch's memory begins, and what a vector never crosses


@dataclass(frozen=True, kw_only=True)
class Hyper:
    """Arguments of AdamW's kernel: weights, their moments and step counts, and the numbers."""

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


class Flat:
    """Tensors shaped like `like`, those of whole cache lines one behind the other in one piece of memory.

    AdamW treats each number by itself, in vectors that divide a cache line, so such tensors come out the same as
    one, to the bit. The others end in numbers that fill no vector, and stay alone.
    """

    def __init__(self, like: Sequence[Tensor]) -> None:
        whole = [value for value in like if value.nbytes % LINE == 0]
        memory = like[0].new_zeros(sum(value.numel() for value in whole))
        parts = iter(memory.split([value.numel() for value in whole]))
        self.views = [
            next(parts).view(value.shape) if value.nbytes % LINE == 0 else torch.zeros_like(value) for value in like
        ]
        alone = [view for view in self.views if view.nbytes % LINE]
        self.pieces = [memory, *alone] if whole else alone

    def read(self, values: list[Tensor]) -> None:
        """Take over `values`."""
        torch._foreach_copy_(self.views, values)

    def write(self, values: list[Tensor]) -> None:
        """Hand out to `values` what is here."""
        torch._foreach_copy_(values, self.views)


class FusedSteps:
    """AdamW's steps on memory of its own: weights and gradients always lie in the same place.

    All weights have taken equally many steps, so one count serves for all while it runs. Between `begin` and `end`
    the optimizer's state and the model's weights are those before the steps.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.weights, self.gradients, self._means, self._squares = (Flat(weights) for _ in range(4))
        self._count = torch.zeros(())
        self._counted = self._count.numpy().reshape(1).data  # a tenth of the time of torch's addition
        self._taken = 0

    def begin(self, hyper: Hyper) -> None:
        """Take over weights and moments as they are now."""
        assert KERNEL is not None
        self._hyper, self._taken = hyper, 0
        for flat, values in self._held():
            flat.read(values)
        self._count.copy_(hyper.steps[0])
        lists = [each.pieces for each in (self.weights, self.gradients, self._means, self._squares)]
        self._kernel = partial(KERNEL, *lists, [], [self._count] * len(lists[0]), **hyper.numbers)

    def take(self) -> None:
        """Take one step with the gradients as they are now."""
        self._counted[0] += 1
        self._kernel()
        self._taken += 1

    def end(self) -> None:
        """Make the model's weights and the optimizer's state those after the steps taken."""
        for flat, values in self._held():
            flat.write(values)
        torch._foreach_add_(self._hyper.steps, self._taken)

    def _held(self) -> list[tuple[Flat, list[Tensor]]]:
        hyper = self._hyper
        return [(self.weights, hyper.weights), (self._means, hyper.means), (self._squares, hyper.squares)]
