"""Blocks computed in other ways, forced on the CPU, against the plain ones: values and gradients of whole models."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.fixtures.fast_blocks import LABELS, TOKENS, decoder, learned, next_token
from trainer.models.activation_checkpointing import checkpointed
from trainer.models.adapters.lora import adapters_disabled
from trainer.models.fast.adapted import AdaptedBlock
from trainer.models.fast.elementwise import PLAIN
from trainer.models.fast.feed_forward import FeedForward
from trainer.models.language.model import JudgedModel, LanguageModel, PreferenceModel


def adapt(model, *, stream=None, tile=0):
    dtype = next(model.parameters()).dtype
    for block in model.model.layers:
        how = {"dtype": dtype, "stream": stream or dtype, "ops": PLAIN, "tile": tile}
        block.fast = AdaptedBlock(block, model.config.feed_forward.activation, **how)
    return model


def both(plain, fast, *, compute):
    torch.manual_seed(0)
    exact = learned(plain, compute(plain))
    found = learned(fast, compute(fast))
    assert torch.allclose(found[0], exact[0], rtol=1e-12)
    assert found[1].keys() == exact[1].keys()
    assert all(value.abs().max() > 0 for value in exact[1].values())  # an adapter without gradient would prove nothing
    for name, value in exact[1].items():
        assert torch.allclose(found[1][name], value, rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma", "biased", "gpt2"])
def test_adapted_blocks_of_each_family_equal_plain_ones_in_value_and_gradient(family):
    plain = decoder(family, ("all",))
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


@pytest.mark.parametrize("targets", [("q_proj", "v_proj"), ("down_proj",), ("k_proj", "up_proj", "o_proj")])
def test_adapted_blocks_with_some_layers_adapted_equal_plain_ones(targets):
    plain = decoder("llama", targets)
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


@pytest.mark.parametrize("targets", [("all",), ("down_proj",), ("q_proj",)])  # the last: none in the layer itself
@pytest.mark.parametrize(("quantized", "tile"), [(True, 14), (False, 7), (True, 48)])  # of 24 tokens
def test_adapted_blocks_by_tiles_of_tokens_equal_plain_ones(targets, quantized, tile):
    plain = decoder("qwen2", targets, quantized=quantized)
    both(plain, adapt(copy.deepcopy(plain), tile=tile), compute=next_token)


@pytest.mark.parametrize("rank", [1, 8, 40])
def test_adapted_blocks_of_any_rank_equal_plain_ones(rank):
    plain = decoder("qwen2", ("all",), rank=rank)
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


def test_adapted_blocks_over_four_bit_weights_equal_plain_ones():
    plain = decoder("qwen2", ("all",), quantized=True)
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


@pytest.mark.parametrize(
    ("choice", "tile"), [("full", 0), ("full", 7), ("full", 24), ("selective", 0), ("offloaded", 7)]
)
def test_adapted_blocks_under_checkpointing_equal_plain_ones(choice, tile):
    plain = decoder("llama", ("all",))
    fast = adapt(copy.deepcopy(plain), tile=tile)
    checkpointed(fast, choice, list(fast.model.layers))
    both(plain, fast, compute=next_token)


@pytest.mark.parametrize("choice", ["full", "offloaded"])
def test_lean_layers_form_their_outputs_in_the_first_pass_alone(choice, monkeypatch):
    fast, seen = adapt(decoder("llama", ("all",)), tile=24), []
    whole = FeedForward.outputs
    monkeypatch.setattr(FeedForward, "outputs", lambda self, inputs: seen.append(len(inputs)) or whole(self, inputs))
    checkpointed(fast, choice, list(fast.model.layers))
    learned(fast, next_token(fast))
    assert seen == [24] * len(fast.model.layers)


def test_adapted_blocks_over_packed_documents_equal_plain_ones():
    documents = torch.tensor([[0] * 5 + [1] * 7, [0] * 9 + [1] * 3])
    positions = torch.tensor([[*range(5), *range(7)], [*range(9), *range(3)]])
    plain = decoder("llama", ("all",))
    both(
        plain,
        adapt(copy.deepcopy(plain)),
        compute=lambda model: LanguageModel(model)(TOKENS, LABELS, positions=positions, documents=documents),
    )


def test_preference_loss_over_adapted_blocks_equals_that_over_plain_ones():
    tokens = torch.randint(61, (3, 2, 10), generator=torch.Generator().manual_seed(6))
    labels, documents = tokens.roll(-1, 2), torch.zeros_like(tokens)
    plain = decoder("llama", ("all",))
    both(
        plain,
        adapt(copy.deepcopy(plain)),
        compute=lambda model: PreferenceModel(model, beta=0.3)(tokens, labels, documents),
    )


def test_loss_of_good_and_bad_answers_over_adapted_blocks_equals_that_over_plain_ones():
    tokens = torch.randint(61, (2, 2, 3, 10), generator=torch.Generator().manual_seed(6))
    labels, documents = tokens.roll(-1, 3), torch.zeros_like(tokens)
    verdicts = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 0.0]])
    plain = decoder("llama", ("all",))
    both(
        plain,
        adapt(copy.deepcopy(plain)),
        compute=lambda model: JudgedModel(model, beta=0.3, weights=(1.0, 2.0))(tokens, labels, documents, verdicts),
    )


def test_adapted_blocks_after_a_step_use_the_new_adapters():
    plain = decoder("llama", ("all",))
    fast = adapt(copy.deepcopy(plain))
    for model in (plain, fast):
        optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=0.1)
        next_token(model).backward()
        optimizer.step()
    with torch.no_grad():
        assert torch.allclose(next_token(fast), next_token(plain), rtol=1e-12)
        with adapters_disabled(plain), adapters_disabled(fast):
            assert torch.allclose(next_token(fast), next_token(plain), rtol=1e-12)


def test_adapted_blocks_keep_names_and_values_of_the_state_dict():
    plain = decoder("llama", ("all",))
    held = adapt(copy.deepcopy(plain)).state_dict()
    assert held.keys() == plain.state_dict().keys()
    assert all(torch.equal(held[name], value) for name, value in plain.state_dict().items())


def test_adapted_blocks_when_copied_compute_plainly_and_equally():
    fast = adapt(decoder("llama", ("all",)))
    twin = copy.deepcopy(fast)
    assert all(block.fast is None for block in twin.model.layers)
    assert torch.allclose(next_token(twin), next_token(fast), rtol=1e-12)
