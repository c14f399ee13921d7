"""Losses of preference pairs, and of good and bad answers, equal their formulas."""

from __future__ import annotations

import pytest
import torch

from trainer.models.language.preference_loss import dpo_loss_sum, kto_loss_sum


def test_dpo_loss_of_the_reference_itself_is_log_two_a_pair():
    log_probabilities = torch.randn(5, 2, dtype=torch.float64)
    loss = dpo_loss_sum(log_probabilities, log_probabilities, beta=0.1)
    assert torch.allclose(loss.loss, 5 * torch.tensor(2.0, dtype=torch.float64).log())
    assert loss.margin == 0.0


def test_dpo_loss_equals_the_formula_with_smoothing():
    torch.manual_seed(1)
    policy, reference = torch.randn(2, 6, 2, dtype=torch.float64)
    margin = 0.3 * ((policy[:, 0] - reference[:, 0]) - (policy[:, 1] - reference[:, 1]))
    probability = 1 / (1 + (-margin).exp())
    expected = -(0.9 * probability.log() + 0.1 * (1 - probability).log()).sum()
    loss = dpo_loss_sum(policy, reference, beta=0.3, label_smoothing=0.1)
    assert torch.allclose(loss.loss, expected, rtol=1e-12)
    assert loss.correct == (margin > 0).sum()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_kto_loss_equals_the_formula_with_a_distance_per_group_that_is_never_negative(sign):
    torch.manual_seed(2)
    policy, reference, exchanged = torch.randn(3, 2, 4, dtype=torch.float64)
    policy.requires_grad_()
    exchanged = (sign * exchanged.abs()).requires_grad_()
    verdicts = torch.tensor([[1.0, -1.0, -1.0, 1.0], [1.0, 1.0, -1.0, 0.0]])
    weights = (1.5, 0.25)
    how = {"policy": policy, "reference": reference, "exchanged": exchanged, "verdicts": verdicts}
    loss = kto_loss_sum(**how, beta=0.3, weights=weights)
    expected = torch.zeros((), dtype=torch.float64)
    for group in range(2):
        distance = max(0.0, exchanged[group].mean().item())
        for place in range(4):
            gain = 0.3 * (policy[group, place] - reference[group, place] - distance)
            verdict = verdicts[group, place]
            weight = {1.0: 1.5, -1.0: 0.25, 0.0: 0.0}[verdict.item()]
            expected = expected + weight * (1 - 1 / (1 + (-verdict * gain).exp()))
    assert torch.allclose(loss, expected, rtol=1e-12)
    loss.backward()
    assert exchanged.grad is None
    assert (policy.grad * verdicts <= 0).all() and policy.grad[1, 3] == 0
