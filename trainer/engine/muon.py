"""Muon: momentum whose matrices are orthogonalised by five steps of Newton and Schulz; AdamW for all other weights.

Method and coefficients: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon/. Matrices may have a learning rate of their own: the spectral norm of an
update, scaled by sqrt(max(1, rows / columns)) as there, which does not depend on the width. Without one, updates have
the size of AdamW's, 0.2 sqrt(max(rows, columns)), so that AdamW's learning rate serves both: Liu et al., "Muon is
Scalable for LLM Training", 2025, arXiv 2502.16982.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
MOMENTUM = 0.95
MATCHED = 0.2  # root mean square of AdamW's updates in practice (arXiv 2502.16982, section 2.2)
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of AdamW
BATCH = 2**25  # numbers that are orthogonalised at a time: few large products, and temporaries of bounded size
TEMPORARIES = 6  # of a batch, each in the weights' dtype at most

Piece = tuple[Tensor, Tensor, Tensor]  # views of a weight, of its gradient and of its momentum


class Muon(torch.optim.Optimizer):
    """Groups have `matrices`: whether Muon takes their weights, all of two dimensions, or AdamW.

    A group's `spectral` states whether its learning rate is the spectral norm of an update, or AdamW's.

    Args:
        products: number format of the orthogonalisation.
        betas: of AdamW's moments.
        parts: numbers of rows of the matrices that a weight is made of, by the weight's id: a weight that holds query,
            key and value is three matrices. A weight without an entry is one.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float,
        *,
        products: torch.dtype = torch.float32,
        betas: tuple[float, float] = BETAS,
        parts: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        own = {"spectral": False, "betas": betas, "split": True}
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0, "matrices": False, **own})
        self.products, self.parts = products, dict(parts or {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state; an earlier trainer's goes on as it began, with its own moments and whole weights."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name, before in (("spectral", False), ("betas", BETAS), ("split", False)):
                group.setdefault(name, before)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with the gradients as they are; states are made before any weight changes."""
        loss = None if closure is None else closure()
        groups = [(group, [each for each in group["params"] if each.grad is not None]) for group in self.param_groups]
        for group, weights in groups:
            for weight in weights:
                if not self.state[weight]:
                    self.state[weight] = _fresh(weight, matrices=group["matrices"])
        for group, weights in groups:
            if not weights:
                continue
            if group["matrices"]:
                self._matrices(group, weights)
            else:
                states = [self.state[weight] for weight in weights]
                adamw_steps(weights, states, lr=group["lr"], weight_decay=group["weight_decay"], betas=group["betas"])
        return loss

    def reserve(self) -> list[Tensor]:
        """Return memory that the next step takes: states that are not there, and the temporaries of a batch."""
        weights = [(group, weight) for group in self.param_groups for weight in group["params"]]
        missing = [(group, weight) for group, weight in weights if not self.state.get(weight)]
        held = [torch.empty_like(weight) for group, weight in missing for _ in range(1 if group["matrices"] else 2)]
        matrices = [weight for group, weight in weights if group["matrices"]]
        largest = max(matrices, key=Tensor.numel)
        batch = min(sum(map(Tensor.numel, matrices)), max(BATCH, largest.numel()))
        others = sum(weight.numel() for group, weight in weights if not group["matrices"])
        counts = [batch] * TEMPORARIES + [others] * bool(others)
        return held + [largest.new_empty(count) for count in counts]

    def _matrices(self, group: dict[str, Any], weights: Sequence[Tensor]) -> None:
        """Take Muon's step of all `weights`, many matrices of one shape at a time."""
        momenta = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_lerp_(momenta, [_gradient(weight) for weight in weights], 1 - MOMENTUM)
        if group["weight_decay"]:
            torch._foreach_mul_(list(weights), 1 - group["lr"] * group["weight_decay"])
        pieces = [piece for weight in weights for piece in self._pieces(weight, split=group["split"])]
        for batch in batches(pieces):
            towards = torch._foreach_lerp([each[1] for each in batch], [each[2] for each in batch], MOMENTUM)
            tall = batch[0][0].shape[0] > batch[0][0].shape[1]
            stacked = torch.stack([(each.mT if tall else each).to(self.products) for each in towards])
            del towards
            found = orthogonalised(stacked, self.products)
            step = group["lr"] * scale_of(batch[0][0].shape, spectral=group["spectral"])
            for (weight, _, _), update in zip(batch, found, strict=True):
                weight.add_((update.mT if tall else update).to(weight.dtype), alpha=-step)

    def _pieces(self, weight: Tensor, *, split: bool) -> Iterator[Piece]:
        """Yield a weight's matrices, as views; with `split` those of query, key and value apart."""
        rows = self.parts.get(id(weight)) if split else None
        whole = (weight, _gradient(weight), self.state[weight]["momentum"])
        yield from zip(*(each.split(list(rows)) for each in whole), strict=True) if rows else [whole]


def _gradient(weight: Tensor) -> Tensor:
    assert weight.grad is not None
    return weight.grad


def _fresh(weight: Tensor, *, matrices: bool) -> dict[str, Any]:
    if matrices:
        return {"momentum": torch.zeros_like(weight)}
    return {"step": 0, "exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}


def scale_of(shape: Sequence[int], *, spectral: bool) -> float:
    """Return the factor of an orthogonalised update, of (rows, columns); see the module."""
    rows, columns = shape
    return math.sqrt(max(1.0, rows / columns)) if spectral else MATCHED * math.sqrt(max(rows, columns))


def batches(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces by shape, at most BATCH numbers at a time, or one piece."""
    shapes: dict[tuple[Any, ...], list[Piece]] = {}
    for piece in pieces:
        shapes.setdefault((piece[0].shape, piece[0].device, piece[0].dtype), []).append(piece)
    for same in shapes.values():
        count = max(1, BATCH // max(same[0][0].numel(), 1))
        yield from (same[first : first + count] for first in range(0, len(same), count))


def orthogonalised(update: Tensor, products: torch.dtype) -> Tensor:
    """Return matrices of the same singular vectors whose singular values are near 1 (0.7 to 1.2).

    Args:
        update: (…, rows, columns).
        products: number format that it is computed in, and that of the result.
    """
    a, b, c = COEFFICIENTS
    tall = update.shape[-2] > update.shape[-1]
    matrix = (update.mT if tall else update).to(products).reshape(-1, *sorted(update.shape[-2:]))
    matrix = matrix / (matrix.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        square = matrix @ matrix.mT
        square = torch.baddbmm(square, square, square, beta=b, alpha=c)
        matrix = torch.baddbmm(matrix, square, matrix, beta=a)
    matrix = matrix.reshape(*update.shape[:-2], *matrix.shape[-2:])
    return matrix.mT if tall else matrix


@dataclass(frozen=True, kw_only=True)
class _Moments:
    """AdamW's state of weights that took equally many steps."""

    weights: list[Tensor]
    means: list[Tensor]
    squares: list[Tensor]


def adamw_steps(
    weights: Sequence[Tensor],
    states: Sequence[dict[str, Any]],
    *,
    lr: float,
    weight_decay: float,
    betas: tuple[float, float] = BETAS,
) -> None:
    """Take AdamW's step of weights (Loshchilov and Hutter 2019, arXiv 1711.05101), in place and all at a time.

    Args:
        weights: each with its gradient.
        states: step, exp_avg and exp_avg_sq of each, changed in place.
        lr: step size.
        weight_decay: share of the weights, times `lr`, that is taken off.
        betas: decay of the mean and of the mean square.
    """
    by_step: dict[tuple[Any, ...], _Moments] = {}
    for weight, state in zip(weights, states, strict=True):
        state["step"] += 1
        key = (state["step"], weight.dtype, weight.device)
        same = by_step.setdefault(key, _Moments(weights=[], means=[], squares=[]))
        same.weights.append(weight)
        same.means.append(state["exp_avg"])
        same.squares.append(state["exp_avg_sq"])
    for (step, _, _), same in by_step.items():
        gradients, (beta1, beta2) = [_gradient(weight) for weight in same.weights], betas
        torch._foreach_lerp_(same.means, gradients, 1 - beta1)
        torch._foreach_mul_(same.squares, beta2)
        torch._foreach_addcmul_(same.squares, gradients, gradients, value=1 - beta2)
        deviations = torch._foreach_sqrt(same.squares)
        torch._foreach_div_(deviations, math.sqrt(1 - beta2**step))
        torch._foreach_add_(deviations, EPSILON)
        torch._foreach_mul_(same.weights, 1 - lr * weight_decay)
        torch._foreach_addcdiv_(same.weights, same.means, deviations, value=-lr / (1 - beta1**step))


def adamw_step(weight: Tensor, state: dict[str, Any], *, lr: float, weight_decay: float) -> None:
    """Take AdamW's step of one weight, in place; see `adamw_steps`.

    Args:
        weight: with its gradient.
        state: step, exp_avg and exp_avg_sq, changed in place.
        lr: step size.
        weight_decay: share of the weight, times `lr`, that is taken off.
    """
    adamw_steps([weight], [state], lr=lr, weight_decay=weight_decay)
