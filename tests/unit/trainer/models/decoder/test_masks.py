"""Packed rows against the same documents alone: logits and gradients, on each attention backend."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.packed_documents import FAMILIES, alone, made, packed, use_backend
from trainer.models.decoder.masks import AttentionLayout
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


CPU = torch.device("cpu")
ONE_ROW = torch.tensor([[0, 0, 0, 1, 1, -1]])


def layout(tokens=4, past=0, documents=None):
    return AttentionLayout(rows=1, tokens=tokens, device=CPU, past=past, documents=documents)


@pytest.mark.parametrize(("window", "plain"), [(None, True), (5, True), (4, True), (3, False), (1, False)])
def test_window_of_all_tokens_needs_no_mask(window, plain):
    assert layout(4).is_plain(window) is plain
    assert not layout(4, past=1).is_plain(None)
    assert not layout(6, documents=ONE_ROW).is_plain(None)


def test_token_attends_to_itself_and_to_earlier_ones_of_its_window():
    assert layout(4).dense(None)[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert layout(4).dense(2)[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert layout(2, past=2).dense(3)[0, 0].int().tolist() == [[1, 1, 1, 0], [0, 1, 1, 1]]


def test_token_attends_to_its_own_document_alone():
    mask = layout(6, documents=ONE_ROW).dense(None)
    assert mask.shape == (1, 1, 6, 6)
    assert mask[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize("window", [None, 1, 2, 5])
@pytest.mark.parametrize(("tokens", "past", "documents"), [(6, 0, None), (6, 0, ONE_ROW), (2, 5, None)])
def test_mask_function_and_dense_mask_state_the_same(window, tokens, past, documents):
    made = layout(tokens, past=past, documents=documents)
    allowed = made._mask_function(window)
    query, key = torch.meshgrid(torch.arange(tokens), torch.arange(past + tokens), indexing="ij")
    found = allowed(torch.zeros_like(query), torch.zeros_like(query), query, key)
    assert torch.equal(found, made.dense(window)[0, 0])


def test_spans_are_the_runs_of_each_row():
    two = torch.tensor([[0, 0, 0, 1, 1, -1], [3, 2, 2, 2, 2, 2]])
    made = AttentionLayout(rows=2, tokens=6, device=CPU, documents=two)
    assert made.spans() == [[(0, 3), (3, 5), (5, 6)], [(0, 1), (1, 6)]]
    assert layout(4).spans() == [[(0, 4)]]


def test_masks_are_made_once_for_each_window():
    made = layout(4)
    assert made.dense(2) is made.dense(2)
    assert made.dense(2) is not made.dense(3)
