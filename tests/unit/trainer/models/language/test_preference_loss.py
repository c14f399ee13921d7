"""The loss of preference pairs equals its formula."""

from __future__ import annotations

import torch

from trainer.models.language.preference_loss import dpo_loss_sum


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
