"""AdamW whose moments are held in 8 bits, a scale for each block of 256 numbers.

Dynamic quantisation by blocks: Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization", arXiv 2110.02861.
As there, small tensors and embeddings keep moments in full. In place of the second moment its root is held, rounded to
no level of 0: a weight whose gradients are small next to its block's would otherwise be divided by epsilon alone. Plain
torch, so that no package's kernel decides whether values are right on a card, and a resumed run has the same bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trainer.engine.muon import BETAS, EPSILON, adamw_step

BLOCK = 256  # numbers that share a scale
FEWEST = 4096  # numbers of a tensor whose moments are held in 8 bits
CHUNK = 2**22  # numbers that are in fp32 at a time, a multiple of BLOCK
DECADES = 7


class AdamW8bit(torch.optim.Optimizer):
    """AdamW of the weights, those of `wide` with moments in full."""

    def __init__(self, weights: Iterable[Tensor], lr: float, *, wide: Sequence[Tensor] = ()) -> None:
        super().__init__(list(weights), {"lr": lr, "weight_decay": 0.01})
        self._wide = {id(weight) for weight in wide}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with the gradients as they are; states are made before any weight changes."""
        loss = None if closure is None else closure()
        found = [(group, each) for group in self.param_groups for each in group["params"] if each.grad is not None]
        for _, weight in found:
            if not self.state[weight]:
                self.state[weight] = self._fresh(weight)
        for group, weight in found:
            how = {"lr": group["lr"], "weight_decay": group["weight_decay"]}
            if "mean_codes" in self.state[weight]:
                quantized_step(weight, self.state[weight], **how)
            else:
                adamw_step(weight, self.state[weight], **how)
        return loss

    def reserve(self) -> list[Tensor]:
        """Return memory that the next step takes: states that are not there, and a chunk's temporaries."""
        weights = [weight for group in self.param_groups for weight in group["params"]]
        held = [each for weight in weights if not self.state.get(weight) for each in self._fresh(weight).values()]
        largest = max(weights, key=Tensor.numel)
        chunk = min(largest.numel(), CHUNK) if self.is_narrow(largest) else largest.numel()
        tensors = [each for each in held if isinstance(each, Tensor)]
        return [*tensors, torch.empty(6 * chunk, dtype=torch.float32, device=largest.device)]

    def is_narrow(self, weight: Tensor) -> bool:
        """Return whether a weight's moments are held in 8 bits."""
        return id(weight) not in self._wide and weight.numel() >= FEWEST and weight.is_contiguous()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load as any optimizer does, with each tensor in its own dtype: torch would cast codes to the weight's."""
        super().load_state_dict(state_dict)
        weights = [weight for group in self.param_groups for weight in group["params"]]
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        for number, weight in zip(numbers, weights, strict=True):
            for name, value in state_dict["state"].get(number, {}).items():
                if isinstance(value, Tensor):
                    self.state[weight][name] = value.to(weight.device, copy=True)

    def _fresh(self, weight: Tensor) -> dict[str, Any]:
        if not self.is_narrow(weight):
            return {"step": 0, "exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
        blocks = -(-weight.numel() // BLOCK)
        zero = _levels(True).index(0.0)
        made: dict[str, Any] = {"step": 0}
        for name, code in (("mean", zero), ("root", 0)):
            made[f"{name}_codes"] = torch.full((weight.numel(),), code, dtype=torch.uint8, device=weight.device)
            made[f"{name}_scales"] = torch.zeros(blocks, dtype=torch.float32, device=weight.device)
        return made


def quantized_step(weight: Tensor, state: dict[str, Any], *, lr: float, weight_decay: float) -> None:
    """Take AdamW's step of one weight, a chunk of its moments in fp32 at a time.

    Args:
        weight: contiguous, with its gradient.
        state: step, and codes and scales of both moments, changed in place.
        lr: step size.
        weight_decay: share of the weight, times `lr`, that is taken off.
    """
    assert weight.grad is not None
    (beta1, beta2), flat, gradients = BETAS, weight.detach().view(-1), weight.grad.reshape(-1)
    state["step"] += 1
    first, second = 1 - beta1 ** state["step"], math.sqrt(1 - beta2 ** state["step"])
    for begin in range(0, len(flat), CHUNK):
        part = slice(begin, begin + CHUNK)
        blocks = slice(begin // BLOCK, -(-min(begin + CHUNK, len(flat)) // BLOCK))
        gradient = gradients[part].float()
        mean = dequantized(state["mean_codes"][part], state["mean_scales"][blocks], signed=True)
        root = dequantized(state["root_codes"][part], state["root_scales"][blocks], signed=False)
        mean.lerp_(gradient, 1 - beta1)
        root.square_().mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2).sqrt_()
        for name, values in (("mean", mean), ("root", root)):
            codes, scales = quantized(values, signed=name == "mean")
            state[f"{name}_codes"][part], state[f"{name}_scales"][blocks] = codes, scales
        flat[part].mul_(1 - lr * weight_decay)
        flat[part].addcdiv_(mean.to(flat.dtype), (root / second + EPSILON).to(flat.dtype), value=-lr / first)


def quantized(values: Tensor, *, signed: bool) -> tuple[Tensor, Tensor]:
    """Return the code of the nearest level of each number, uint8, and each block's largest magnitude, fp32.

    Args:
        values: numbers in fp32, one dimension; the last block may be short.
        signed: whether they have both signs; otherwise a number above 0 has no code of 0.
    """
    levels = levels_on(signed, values.device)
    blocks = functional.pad(values, (0, -len(values) % BLOCK)).view(-1, BLOCK)
    scales = blocks.abs().amax(dim=1)
    relative = (blocks / scales.where(scales > 0, 1.0).unsqueeze(1)).view(-1)[: len(values)]
    codes = torch.bucketize(relative, (levels[1:] + levels[:-1]) / 2)
    if not signed:
        codes = torch.where(values > 0, codes.clamp(min=1), codes)
    return codes.to(torch.uint8), scales


def dequantized(codes: Tensor, scales: Tensor, *, signed: bool) -> Tensor:
    """Return the numbers that codes stand for, fp32.

    Args:
        codes: uint8, one dimension.
        scales: fp32, one for each BLOCK of them.
        signed: as they were quantised.
    """
    values = levels_on(signed, codes.device)[codes.int()]
    padded = functional.pad(values, (0, -len(codes) % BLOCK)).view(-1, BLOCK) * scales.unsqueeze(1)
    return padded.view(-1)[: len(codes)]


def levels_on(signed: bool, device: torch.device) -> Tensor:
    """Return the 256 levels from the least to the largest, fp32.

    Args:
        signed: from -1 to 1, else from 0 to 1.
        device: where they are to be.
    """
    return torch.tensor(_levels(signed), dtype=torch.float32, device=device)


@functools.cache
def _levels(signed: bool) -> list[float]:
    """Return 0, 1, and the middles of equal parts of each of DECADES decades below 1, each with twice the last one's.

    Small magnitudes keep their exponent and have fewer digits: what the paper calls dynamic tree quantisation.
    """
    found = [0.0, 1.0]
    for decade in range(DECADES):
        parts = 2**decade * (1 if signed else 2)
        middles = [(0.1 + 0.9 * (part + 0.5) / parts) * 10.0 ** (decade - DECADES + 1) for part in range(parts)]
        found += middles + ([-each for each in middles] if signed else [])
    return sorted(found)
