"""Direct preference optimisation (Rafailov et al. 2023, arXiv 2305.18290), equation 7."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import logsigmoid


@dataclass(frozen=True, kw_only=True)
class PreferenceLoss:
    """Sums over pairs, scalars in the log-probabilities' dtype: the loss, and figures of the model."""

    loss: Tensor
    margin: Tensor  # sum of beta * (chosen reward - rejected reward)
    correct: Tensor  # pairs whose chosen answer has the larger reward


def dpo_loss_sum(policy: Tensor, reference: Tensor, *, beta: float, label_smoothing: float = 0.0) -> PreferenceLoss:
    """Return the loss of pairs.

    Args:
        policy: (pairs, 2), log-probabilities of the chosen and the rejected answer under the model that learns.
        reference: the same under the model it starts from, such as the model with its adapter off.
        beta: how strongly the model is held to the reference.
        label_smoothing: the assumed share of pairs whose order is wrong, below 0.5.
    """
    ratio = policy - reference.detach()
    margin = beta * (ratio[:, 0] - ratio[:, 1])
    losses = -(1 - label_smoothing) * logsigmoid(margin) - label_smoothing * logsigmoid(-margin)
    return PreferenceLoss(loss=losses.sum(), margin=margin.detach().sum(), correct=(margin.detach() > 0).sum())
