"""Cross entropy of hidden states under a vocabulary head, without the logits of all tokens at once.

Logits exist for one chunk of tokens at a time. Gradients are formed in the forward pass, while the chunk is there,
so nothing is computed twice; the idea is that of Liger-Kernel's fused linear cross entropy, here in plain torch.
Softmax, losses and sums are in fp32 (fp64 for fp64 inputs), whatever the precision of the products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trainer.data.tokens.labels import IGNORED

CHUNK = 2048  # tokens
Softmax = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From logits (tokens, vocabulary), labels and each token's factor to losses (tokens,) and the gradient by the logits.

The factor scales the gradient alone. The logits may be overwritten; the gradient has their dtype.
"""


def softmax_gradient(logits: Tensor, labels: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return losses (tokens,) and the gradient by the logits, in their dtype, by torch's operations.

    Both are computed in fp32 (fp64 for fp64).

    Args:
        logits: (tokens, vocabulary); kept as they are.
        labels: token ids, (tokens,); IGNORED has a loss and a gradient of 0.
        scale: each token's factor of the gradient, (tokens,); losses are not scaled.
    """
    logs, safe, there = _logs(logits, labels)
    losses = -logs.gather(1, safe.unsqueeze(1)).squeeze(1).where(there, 0.0)
    gradient = logs.exp_()
    gradient.scatter_add_(1, safe.unsqueeze(1), torch.full_like(gradient[:, :1], -1))
    return losses, gradient.mul_(scale.where(there, 0.0).unsqueeze(1)).to(logits.dtype)


def _logs(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-softmax, the labels with 0 for IGNORED, and where they are not IGNORED."""
    there = labels != IGNORED
    return logits.to(_wide(logits.dtype)).log_softmax(dim=-1), labels.where(there, 0), there


@dataclass(frozen=True, kw_only=True)
class Head:
    """The vocabulary head, which turns hidden states into losses.

    chunk: tokens whose logits exist at a time. wide: whether a 16-bit product can be summed in fp32 on this device.
    in_place: whether `softmax` takes no memory beyond the logits; it then gives the losses where no gradient is wanted,
    too, for which torch's operations hold the logits twice in fp32.
    """

    softmax: Softmax = softmax_gradient
    chunk: int = CHUNK
    wide: bool = False
    in_place: bool = False

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return each token's loss, 0 where IGNORED; the logits may be overwritten."""
        if not self.in_place or logits.device.type == "meta":
            return _losses(logits, labels)
        return self.softmax(logits, labels, logits.new_zeros(len(labels), dtype=_wide(logits.dtype)))[0]


PLAIN = Head()


def wide_product(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether this torch has a product of 16-bit matrices in fp32 on this device, and it is right."""
    if device.type != "cuda" or dtype.itemsize != 2:
        return False
    ones = torch.ones(64, 64, dtype=dtype, device=device)
    total = torch.full((64, 64), 2.0**-9, device=device)
    try:
        total = _add_product(total, ones, ones, wide=True)
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return False
    return bool((total == 64 + 2.0**-9).all())


def linear_cross_entropy_sum(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    token_weights: Tensor | None = None,
    *,
    head: Head = PLAIN,
) -> Tensor:
    """Return the weighted sum of the tokens' cross entropies, a scalar in fp32 (fp64 for fp64).

    Args:
        hidden: (tokens, width), already aligned with the labels.
        weight: (vocabulary, width), the head's.
        labels: (tokens,), IGNORED where a token carries no loss.
        token_weights: (tokens,), None where all weigh 1.
        head: how logits become losses.
    """
    apply: Any = _CrossEntropySum.apply
    dtype = _computed_in(hidden, weight)
    total: Tensor = apply(hidden.to(dtype), weight, labels, token_weights, head, torch.is_grad_enabled())
    return total


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each token's cross entropy in fp32, 0 where IGNORED, of logits that are there as a whole.

    Args:
        logits: (tokens, vocabulary).
        labels: (tokens,).
    """
    wide = logits.to(_wide(logits.dtype))
    return functional.cross_entropy(wide, labels, ignore_index=IGNORED, reduction="none")


def cross_entropy_sum(logits: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """Return the weighted sum of the tokens' cross entropies, a scalar, of logits that are there as a whole.

    Args:
        logits: (tokens, vocabulary).
        labels: (tokens,), IGNORED where a token carries no loss.
        weights: (tokens,), None where all weigh 1.
    """
    losses = token_losses(logits, labels)
    return losses.sum() if weights is None else (losses * weights.to(losses.dtype)).sum()


def token_log_probabilities(hidden: Tensor, weight: Tensor, labels: Tensor, *, head: Head = PLAIN) -> Tensor:
    """Return each label's log-probability, (tokens,) in fp32, 0 where IGNORED.

    For losses that weigh tokens only after all are known. A head that is trained is computed a second time in the
    backward pass; the hidden states' gradient is not.

    Args:
        hidden: hidden states, shape (tokens, width).
        weight: weight of the head, shape (vocabulary, width).
        labels: token ids, IGNORED where none is trained, shape (tokens,).
        head: how logits become losses, and how many tokens at a time.
    """
    apply: Any = _LogProbabilities.apply
    dtype = _computed_in(hidden, weight)
    values: Tensor = apply(hidden.to(dtype), weight, labels, head, torch.is_grad_enabled())
    return values


def _computed_in(hidden: Tensor, weight: Tensor) -> torch.dtype:
    """Return the dtype that autocast would cast a linear layer's inputs to, that of the weight without it."""
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    logs, safe, there = _logs(logits, labels)
    return -logs.gather(1, safe.unsqueeze(1)).squeeze(1).where(there, 0.0)


def _add_product(total: Tensor, gradient: Tensor, hidden: Tensor, *, wide: bool) -> Tensor:
    """Return total + gradient^T hidden, in the dtype of `total`."""
    if wide and total.dtype == torch.float32 and gradient.dtype.itemsize == 2:
        torch.ops.aten.addmm.dtype_out(total, gradient.t(), hidden, torch.float32, out=total)
        return total
    return total.add_((gradient.t() @ hidden).to(total.dtype))


class _CrossEntropySum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, weights: Tensor | None, head: Head, learning: bool
    ) -> Tensor:
        wants_hidden, wants_weight = (learning and needed for needed in ctx.needs_input_grad[:2])
        wide, cast = _wide(hidden.dtype), weight.to(hidden.dtype)
        total = torch.zeros((), dtype=wide, device=hidden.device)
        by_hidden = torch.empty_like(hidden) if wants_hidden else None
        by_weight = torch.zeros_like(weight, dtype=wide) if wants_weight else None
        softmax = head.softmax if hidden.device.type != "meta" else softmax_gradient
        with torch.autocast(hidden.device.type, enabled=False):
            for begin in range(0, len(labels), head.chunk):
                place = slice(begin, begin + head.chunk)
                logits = hidden[place] @ cast.t()
                scale = (labels[place] != IGNORED).to(wide)
                scale = scale if weights is None else scale * weights[place].to(wide)
                if by_hidden is None and by_weight is None:
                    total += (head.losses(logits, labels[place]) * scale).sum()
                    del logits
                    continue
                losses, gradient = softmax(logits, labels[place], scale)
                total += (losses * scale).sum()
                if by_hidden is not None:
                    torch.mm(gradient, cast, out=by_hidden[place])
                if by_weight is not None:
                    by_weight = _add_product(by_weight, gradient, hidden[place], wide=head.wide)
                del logits, gradient  # otherwise the next chunk's would be there together with them
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
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, head: Head, learning: bool) -> Tensor:
        wants_hidden = learning and ctx.needs_input_grad[0]
        ctx.wants_weight, ctx.head = learning and ctx.needs_input_grad[1], head
        values = torch.zeros(len(labels), dtype=_wide(hidden.dtype), device=hidden.device)
        by_hidden = torch.empty_like(hidden) if wants_hidden else None
        cast = weight.to(hidden.dtype)
        softmax = head.softmax if hidden.device.type != "meta" else softmax_gradient
        with torch.autocast(hidden.device.type, enabled=False):
            for begin in range(0, len(labels), head.chunk):
                place = slice(begin, begin + head.chunk)
                logits = hidden[place] @ cast.t()
                if by_hidden is None:
                    values[place] = -head.losses(logits, labels[place])
                    del logits
                    continue
                losses, gradient = softmax(logits, labels[place], -(labels[place] != IGNORED).to(values.dtype))
                values[place] = -losses
                torch.mm(gradient, cast, out=by_hidden[place])
                del logits, gradient
        ctx.save_for_backward(by_hidden, *([hidden, weight, labels] if ctx.wants_weight else []))
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        by_hidden, *saved = ctx.saved_tensors
        if by_hidden is not None:
            by_hidden = by_hidden * gradient.unsqueeze(1).to(by_hidden.dtype)
        by_weight = _head_gradient(saved, gradient, ctx.head) if ctx.wants_weight else None
        return by_hidden, by_weight, None, None, None


def _head_gradient(saved: Sequence[Tensor], gradient: Tensor, head: Head) -> Tensor:
    hidden, weight, labels = saved
    total, cast = torch.zeros_like(weight, dtype=_wide(weight.dtype)), weight.to(hidden.dtype)
    for begin in range(0, len(labels), head.chunk):
        place = slice(begin, begin + head.chunk)
        scale = -gradient[place] * (labels[place] != IGNORED)
        _, by_logits = head.softmax(hidden[place] @ cast.t(), labels[place], scale)
        total = _add_product(total, by_logits, hidden[place], wide=head.wide)
    return total.to(weight.dtype)
