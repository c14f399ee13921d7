"""Losses of preferences: DPO (Rafailov et al., arXiv 2305.18290) and KTO (Ethayarajh et al., arXiv 2402.01306)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, sigmoid
from torch.nn.functional import logsigmoid


@dataclass(frozen=True, kw_only=True)
class PreferenceLoss:
    """Sums over pairs, scalars in the log-probabilities' dtype: the loss, and figures of the model."""

    loss: Tensor
    margin: Tensor  # sum of beta * (chosen reward - rejected reward)
    correct: Tensor  # pairs whose chosen answer has the larger reward


def dpo_loss_sum(policy: Tensor, reference: Tensor, *, beta: float, label_smoothing: float = 0.0) -> PreferenceLoss:
    """Return the loss of pairs, equation 7 of DPO.

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


def kto_loss_sum(
    *, policy: Tensor, reference: Tensor, exchanged: Tensor, verdicts: Tensor, beta: float, weights: tuple[float, float]
) -> Tensor:
    """Return the sum of the losses of groups of answers, equations 7 and 8 of KTO, a scalar.

    The distance to the reference is estimated per group from answers to other prompts of it, and has no gradient.

    Args:
        policy: (groups, answers), log-probabilities of the answers under the model that learns.
        reference: the same under the model it starts from.
        exchanged: (groups, answers), log-probabilities under the first less those under the second model of each
            prompt with an answer to another one.
        verdicts: (groups, answers), 1 for a good answer, -1 for a bad one, 0 for one that carries no loss.
        beta: how strongly the model is held to the reference.
        weights: of good and of bad answers.
    """
    distance = exchanged.detach().mean(1, keepdim=True).clamp(min=0)
    gain = beta * (policy - reference.detach() - distance)
    scale = weights[0] * (verdicts > 0) + weights[1] * (verdicts < 0)
    return (scale * (1 - sigmoid(verdicts * gain))).sum()
