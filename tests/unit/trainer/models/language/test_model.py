"""A decoder with the loss of good and bad answers: its reference, and its gradients in 16 bits."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.fast_blocks import decoder
from trainer.models.adapters.lora import adapters_disabled
from trainer.models.language.model import JudgedModel
from trainer.models.language.preference_loss import kto_loss_sum

TOKENS = torch.randint(61, (2, 2, 3, 10), generator=torch.Generator().manual_seed(6))
LABELS, DOCUMENTS = TOKENS.roll(-1, 3), torch.zeros_like(TOKENS)
VERDICTS = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 0.0]])


def judged(dtype):
    return JudgedModel(decoder("llama", ("all",)).to(dtype), beta=0.3, weights=(1.0, 2.0))


def test_loss_of_groups_takes_the_reference_without_adapters_and_the_distance_from_exchanged_answers():
    model = judged(torch.float64)
    one, other = ((TOKENS[:, place], LABELS[:, place], DOCUMENTS[:, place]) for place in (0, 1))
    with torch.no_grad():
        policy, moved = model.log_probabilities(*one), model.log_probabilities(*other)
        with adapters_disabled(model.decoder):
            reference, still = model.log_probabilities(*one), model.log_probabilities(*other)
    assert (policy != reference).all() and (moved != still).all()
    how = {"policy": policy, "reference": reference, "exchanged": moved - still, "verdicts": VERDICTS}
    loss = model(TOKENS, LABELS, DOCUMENTS, VERDICTS)
    assert loss.item() == pytest.approx(kto_loss_sum(**how, beta=0.3, weights=(1.0, 2.0)).item(), rel=1e-12)


def test_adapters_in_16_bits_have_gradients_although_they_ran_without_before():
    exact, model = judged(torch.float64), judged(torch.float32)
    exact(TOKENS, LABELS, DOCUMENTS, VERDICTS).backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(TOKENS, LABELS, DOCUMENTS, VERDICTS)
    loss.backward()
    pairs = zip(exact.named_parameters(), model.named_parameters(), strict=True)
    trained = [(name, one.grad, other.grad) for (name, one), (_, other) in pairs if one.requires_grad]
    assert trained
    for name, one, other in trained:
        assert other is not None, name
        assert (one - other).norm() < 0.05 * one.norm(), name


def test_weights_in_16_bits_without_gradient_are_forgotten_before_those_with_one(monkeypatch):
    """Of torch before 2.10 they would be used again, and the adapters not learn; a later one keeps none."""
    events, model = [], judged(torch.float32)
    compute = model.log_probabilities
    monkeypatch.setattr(torch, "clear_autocast_cache", lambda: events.append("forgotten"))
    model.log_probabilities = lambda *given: (events.append(torch.is_grad_enabled()), compute(*given))[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(TOKENS, LABELS, DOCUMENTS, VERDICTS)
    assert events[: events.index(True)] == [False, False, False, "forgotten"]
