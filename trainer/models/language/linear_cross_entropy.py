"""Cross entropy of hidden states under a vocabulary head, without the logits of all tokens at once.

Logits exist for one chunk of tokens at a time. Gradients are formed in the forward pass, while the chunk is there,
so nothing is computed twice; the idea is that of Liger-Kernel's fused linear cross entropy, here in plain torch.
Softmax, losses and sums are in fp32 (fp64 for fp64 inputs), whatever the precision of the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.data.tokens.labels import IGNORED

CHUNK = 2048  # tokens


def linear_cross_entropy_sum(
    hidden: Tensor, weight: Tensor, labels: Tensor, token_weights: Tensor | None = None, *, chunk: int = CHUNK
) -> Tensor:
    """Return the weighted sum of the tokens' cross entropies, a scalar in fp32 (fp64 for fp64).

    Args:
        hidden: (tokens, width), already aligned with the labels.
        weight: (vocabulary, width), the head's.
        labels: (tokens,), IGNORED where a token carries no loss.
        token_weights: (tokens,), None where all weigh 1.
        chunk: tokens whose logits exist at a time.
    """
    hidden, weight = _autocast(hidden, weight)
    apply: Any = _CrossEntropySum.apply
    total: Tensor = apply(hidden, weight, labels, token_weights, chunk, torch.is_grad_enabled())
    return total


def token_log_probabilities(hidden: Tensor, weight: Tensor, labels: Tensor, *, chunk: int = CHUNK) -> Tensor:
    """Return each label's log-probability, (tokens,) in fp32, 0 where IGNORED; parameters as above.

    For losses that weigh tokens only after all are known. A head that is trained is computed a second time in the
    backward pass; the hidden states' gradient is not.

    Args:
        hidden: hidden states, shape (tokens, width).
        weight: weight of the head, shape (vocabulary, width).
        labels: token ids, IGNORED where none is trained, shape (tokens,).
        chunk: tokens computed at a time.
    """
    hidden, weight = _autocast(hidden, weight)
    apply: Any = _LogProbabilities.apply
    values: Tensor = apply(hidden, weight, labels, chunk, torch.is_grad_enabled())
    return values


def _autocast(hidden: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Cast as autocast would cast a linear layer's inputs."""
    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    return hidden.to(dtype), weight.to(dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _chunk_losses(hidden: Tensor, weight: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return losses (tokens,), log-softmax (tokens, vocabulary) and the labels with 0 for IGNORED."""
    logits = (hidden @ weight.t()).to(_wide(hidden.dtype))
    logs = logits.log_softmax(dim=-1)
    there = labels != IGNORED
    safe = labels.where(there, 0)
    losses = -logs.gather(1, safe.unsqueeze(1)).squeeze(1)
    return losses.where(there, 0.0), logs, safe


def _logit_gradient(logs: Tensor, safe: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the losses' gradient by the logits, (tokens, vocabulary), each token's times its `scale`."""
    gradient = logs.exp_()
    gradient.scatter_add_(1, safe.unsqueeze(1), torch.full_like(safe, -1, dtype=gradient.dtype).unsqueeze(1))
    return gradient.mul_(scale.unsqueeze(1)).to(dtype)


class _CrossEntropySum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, weights: Tensor | None, chunk: int, learning: bool
    ) -> Tensor:
        wants_hidden, wants_weight = (learning and wanted for wanted in ctx.needs_input_grad[:2])
        wide = _wide(hidden.dtype)
        total = torch.zeros((), dtype=wide, device=hidden.device)
        by_hidden = torch.empty_like(hidden) if wants_hidden else None
        by_weight = torch.zeros_like(weight, dtype=wide) if wants_weight else None
        with torch.autocast(hidden.device.type, enabled=False):
            for begin in range(0, len(labels), chunk):
                place = slice(begin, begin + chunk)
                losses, logs, safe = _chunk_losses(hidden[place], weight, labels[place])
                scale = (labels[place] != IGNORED).to(wide)
                scale = scale if weights is None else scale * weights[place].to(wide)
                total += (losses * scale).sum()
                if by_hidden is None and by_weight is None:
                    continue
                gradient = _logit_gradient(logs, safe, scale, hidden.dtype)
                if by_hidden is not None:
                    by_hidden[place] = gradient @ weight
                if by_weight is not None:
                    by_weight += (gradient.t() @ hidden[place]).to(wide)
        ctx.save_for_backward(by_hidden, None if by_weight is None else by_weight.to(weight.dtype))
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        by_hidden, by_weight = ctx.saved_tensors
        scaled = [None if each is None else each * gradient.to(each.dtype) for each in (by_hidden, by_weight)]
        return (*scaled, None, None, None, None)


class _LogProbabilities(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, chunk: int, learning: bool) -> Tensor:
        wants_hidden = learning and ctx.needs_input_grad[0]
        ctx.wants_weight, ctx.chunk = learning and ctx.needs_input_grad[1], chunk
        values = torch.zeros(len(labels), dtype=_wide(hidden.dtype), device=hidden.device)
        by_hidden = torch.empty_like(hidden) if wants_hidden else None
        with torch.autocast(hidden.device.type, enabled=False):
            for begin in range(0, len(labels), chunk):
                place = slice(begin, begin + chunk)
                losses, logs, safe = _chunk_losses(hidden[place], weight, labels[place])
                values[place] = -losses
                if by_hidden is not None:
                    there = (labels[place] != IGNORED).to(logs.dtype)
                    by_hidden[place] = _logit_gradient(logs, safe, -there, hidden.dtype) @ weight
        ctx.save_for_backward(by_hidden, *([hidden, weight, labels] if ctx.wants_weight else []))
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        by_hidden, *saved = ctx.saved_tensors
        if by_hidden is not None:
            by_hidden = by_hidden * gradient.unsqueeze(1).to(by_hidden.dtype)
        by_weight = _head_gradient(saved, gradient, ctx.chunk) if ctx.wants_weight else None
        return by_hidden, by_weight, None, None, None


def _head_gradient(saved: Sequence[Tensor], gradient: Tensor, chunk: int) -> Tensor:
    hidden, weight, labels = saved
    total = torch.zeros_like(weight, dtype=_wide(weight.dtype))
    for begin in range(0, len(labels), chunk):
        place = slice(begin, begin + chunk)
        _, logs, safe = _chunk_losses(hidden[place], weight, labels[place])
        scale = -gradient[place] * (labels[place] != IGNORED)
        total += (_logit_gradient(logs, safe, scale, hidden.dtype).t() @ hidden[place]).to(total.dtype)
    return total.to(weight.dtype)
