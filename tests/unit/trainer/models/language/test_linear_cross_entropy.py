"""The chunked loss against torch's own, values and gradients, in fp64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from trainer.data.tokens.labels import IGNORED
from trainer.models.language.linear_cross_entropy import (
    Head,
    linear_cross_entropy_sum,
    softmax_gradient,
    token_log_probabilities,
)

TOKENS, WIDTH, VOCABULARY = 23, 8, 31


def inputs(dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    hidden = torch.randn(TOKENS, WIDTH, dtype=dtype, requires_grad=True)
    weight = torch.randn(VOCABULARY, WIDTH, dtype=dtype, requires_grad=True)
    labels = torch.randint(VOCABULARY, (TOKENS,))
    labels[::3] = IGNORED
    return hidden, weight, labels


def gradients(loss, *of):
    return torch.autograd.grad(loss, of)


@pytest.mark.parametrize("chunk", [1, 5, 23, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_cross_entropy_for_any_chunk_equals_torch(chunk, weighted):
    hidden, weight, labels = inputs()
    weights = torch.rand(TOKENS, dtype=torch.float64) if weighted else torch.ones(TOKENS, dtype=torch.float64)
    plain = functional.cross_entropy(hidden @ weight.t(), labels, reduction="none", ignore_index=IGNORED) * weights
    ours = linear_cross_entropy_sum(hidden, weight, labels, weights if weighted else None, head=Head(chunk=chunk))
    assert torch.allclose(ours, plain.sum(), rtol=1e-12)
    scale = 0.37  # a later division must reach both gradients
    pairs = zip(gradients(ours * scale, hidden, weight), gradients(plain.sum() * scale, hidden, weight), strict=True)
    assert all(torch.allclose(one, other, rtol=1e-10, atol=1e-12) for one, other in pairs)


@pytest.mark.parametrize("chunk", [4, 100])
@pytest.mark.parametrize("frozen", [False, True])
def test_token_log_probabilities_equal_torch_and_take_weights_afterwards(chunk, frozen):
    hidden, weight, labels = inputs()
    weight.requires_grad_(not frozen)
    plain = -functional.cross_entropy(hidden @ weight.t(), labels, reduction="none", ignore_index=IGNORED)
    ours = token_log_probabilities(hidden, weight, labels, head=Head(chunk=chunk))
    assert torch.allclose(ours, plain, rtol=1e-12)
    later = torch.randn(TOKENS, dtype=torch.float64)
    learned = (hidden,) if frozen else (hidden, weight)
    pairs = zip(gradients((ours * later).sum(), *learned), gradients((plain * later).sum(), *learned), strict=True)
    assert all(torch.allclose(one, other, rtol=1e-10, atol=1e-12) for one, other in pairs)


def test_losses_without_gradients_come_from_a_softmax_that_computes_in_place():
    hidden, weight, labels = inputs()
    calls = []

    def softmax(logits, labels, scale):
        calls.append(len(logits))
        losses, gradient = softmax_gradient(logits, labels, scale)
        return losses, logits.copy_(gradient)

    for work in (token_log_probabilities, linear_cross_entropy_sum):
        with torch.no_grad():
            plain = work(hidden, weight, labels)
            ours = work(hidden, weight, labels, head=Head(softmax=softmax, chunk=9, in_place=True))
        assert torch.allclose(ours, plain, rtol=1e-12)
    assert calls == [9, 9, 5, 9, 9, 5]


def test_linear_cross_entropy_with_a_frozen_head_gives_it_no_gradient():
    hidden, weight, labels = inputs()
    weight.requires_grad_(False)
    linear_cross_entropy_sum(hidden, weight, labels).backward()
    assert weight.grad is None
    assert hidden.grad is not None


def test_linear_cross_entropy_of_ignored_tokens_alone_is_zero_with_zero_gradients():
    hidden, weight, labels = inputs()
    loss = linear_cross_entropy_sum(hidden, weight, torch.full_like(labels, IGNORED))
    loss.backward()
    assert loss.item() == 0.0
    assert hidden.grad.abs().max() == 0.0
    assert weight.grad.abs().max() == 0.0


def test_linear_cross_entropy_of_no_tokens_is_zero():
    hidden, weight, labels = inputs()
    assert linear_cross_entropy_sum(hidden[:0], weight, labels[:0]).item() == 0.0


def test_linear_cross_entropy_under_no_grad_requires_no_gradient():
    hidden, weight, labels = inputs()
    with torch.no_grad():
        assert not linear_cross_entropy_sum(hidden, weight, labels).requires_grad


def test_linear_cross_entropy_in_bf16_sums_in_fp32():
    hidden, weight, labels = inputs(torch.bfloat16)
    ours = linear_cross_entropy_sum(hidden, weight, labels, head=Head(chunk=7))
    exact = functional.cross_entropy(
        hidden.double() @ weight.double().t(), labels, reduction="sum", ignore_index=IGNORED
    )
    assert ours.dtype == torch.float32
    assert torch.allclose(ours.double(), exact, rtol=1e-2)
    ours.backward()
    assert hidden.grad.dtype == torch.bfloat16


def test_linear_cross_entropy_under_autocast_computes_products_in_bf16_and_gradients_in_the_weights_dtype():
    hidden, weight, labels = inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = linear_cross_entropy_sum(hidden, weight, labels)
    half = linear_cross_entropy_sum(hidden.bfloat16(), weight.bfloat16(), labels)
    assert torch.equal(loss, half)
    loss.backward()
    assert weight.grad.dtype == torch.float32


def test_logits_beyond_half_precision_stay_finite():
    hidden, weight, labels = inputs(torch.bfloat16)
    loss = linear_cross_entropy_sum(hidden * 300, weight * 300, labels)
    assert loss.isfinite()
