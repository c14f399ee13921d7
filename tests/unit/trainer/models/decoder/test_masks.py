"""Packed rows against the same documents alone: logits and gradients, on each attention backend."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.packed_documents import FAMILIES, alone, made, packed
from trainer.models.decoder.attention import use_backend
from trainer.models.language.linear_cross_entropy import linear_cross_entropy_sum


def loss_of(model, hidden, tokens):
    return linear_cross_entropy_sum(hidden.flatten(0, 1), model.head_weight, (tokens.flatten() * 7 + 3) % 53)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("backend", ["sdpa", "math", "documents"])
def test_packed_rows_give_the_gradients_of_documents_alone(family, backend):
    model, (tokens, positions, documents) = made(family), packed()
    use_backend(model, backend)
    hidden = model.hidden(tokens, positions=positions, documents=documents)
    real = documents >= 0
    loss = loss_of(model, hidden[real].unsqueeze(0), tokens[real].unsqueeze(0))
    together = torch.autograd.grad(loss, list(model.parameters()))
    use_backend(model, "sdpa")
    each = sum(loss_of(model, model.hidden(one), one) for one in alone(tokens, documents))
    apart = torch.autograd.grad(each, list(model.parameters()))
    assert torch.allclose(loss, each, rtol=1e-12)
    for (name, _), one, other in zip(model.named_parameters(), together, apart, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12), name


def test_documents_without_their_mask_would_differ():
    model, (tokens, positions, documents) = made("llama"), packed()
    leaking = model.hidden(tokens, positions=positions)
    masked = model.hidden(tokens, positions=positions, documents=documents)
    assert not torch.allclose(leaking, masked)
