"""A feed-forward layer by tiles of tokens: the values and gradients of the whole one, and no more than a tile of it."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.fixtures.fast_blocks import LABELS, TOKENS, decoder, learned, next_token
from trainer.models.activation_checkpointing import checkpointed
from trainer.models.decoder import layers as decoder_layers
from trainer.models.decoder.layers import FeedForward
from trainer.models.decoder.model import Block
from trainer.models.decoder.tiles import TILE, by_tiles
from trainer.models.fast.compiled import CompiledBlock
from trainer.models.language.model import LanguageModel

FAMILIES = ["llama", "biased", "gpt2", "gemma"]


def by_tiles_of(model, tile, choice="full"):
    checkpointed(model, choice, list(model.model.layers))
    for block in model.model.layers:
        assert block.mlp.tile == TILE
        block.mlp.tile = tile
    return model


def equal(found, exact):
    assert torch.allclose(found[0], exact[0], rtol=1e-12)
    assert found[1].keys() == exact[1].keys()
    for name, value in exact[1].items():
        assert torch.allclose(found[1][name], value, rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("choice", ["full", "offloaded"])
@pytest.mark.parametrize("family", FAMILIES)
def test_feed_forward_by_tiles_gives_the_gradients_of_the_whole(family, choice):
    plain = decoder(family)
    tiled = by_tiles_of(copy.deepcopy(plain), 7, choice)  # of 24 tokens: the last tile is not full
    equal(learned(tiled, next_token(tiled)), learned(plain, next_token(plain)))


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_compiled_block_by_tiles_gives_the_gradients_of_the_whole(family):
    plain = decoder(family)
    tiled = copy.deepcopy(plain)
    shared = CompiledBlock(compile_=lambda function, **_: function)
    for block in tiled.model.layers:
        block.fast = shared
    by_tiles_of(tiled, 7)
    equal(learned(tiled, next_token(tiled)), learned(plain, next_token(plain)))


def test_feed_forward_by_tiles_of_adapted_layers_gives_the_gradients_of_the_whole():
    plain = decoder("qwen2", ("all",), quantized=True)
    tiled = by_tiles_of(copy.deepcopy(plain), 7)
    equal(learned(tiled, next_token(tiled)), learned(plain, next_token(plain)))


def test_feed_forward_by_tiles_in_16_bits_computes_backward_as_forward():
    plain = decoder("llama", dtype=torch.float32)
    tiled = by_tiles_of(copy.deepcopy(plain), 7)
    results = []
    for model in (tiled, plain):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = LanguageModel(model)(TOKENS, LABELS)
        results.append(learned(model, loss))
    for name, value in results[1][1].items():
        assert results[0][1][name].dtype == value.dtype
        assert torch.allclose(results[0][1][name], value, rtol=0.05, atol=0.02 * float(value.abs().max())), name


def test_backward_computes_in_the_16_bits_of_the_forward_pass():
    layer, seen = torch.nn.Linear(4, 4), []

    def work(states):
        seen.append(layer(states).dtype)
        return layer(states)

    states = torch.randn(2, 5, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.float16):  # bfloat16 is what autocast takes by itself
        outputs = by_tiles(work, layer, states, 10)
    outputs.sum().backward()
    assert seen == [torch.float16, torch.float16]


def test_wide_results_have_no_more_tokens_than_a_tile(monkeypatch):
    seen = []
    whole = FeedForward.whole
    monkeypatch.setattr(FeedForward, "whole", lambda self, states: seen.append(len(states)) or whole(self, states))
    tiled = by_tiles_of(decoder("llama"), 7)
    learned(tiled, next_token(tiled))
    once = [7, 7, 7, 3] * len(tiled.model.layers)
    assert seen == once + once  # forward and backward; nothing in the pass that is run again


def test_layer_of_frozen_weights_gives_the_gradient_by_its_inputs():
    layer = torch.nn.Linear(4, 4).double().requires_grad_(False)
    states = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    by_tiles(layer, layer, states, 3).square().sum().backward()
    found, states.grad = states.grad, None
    layer(states).square().sum().backward()
    assert torch.allclose(found, states.grad, rtol=1e-12)


def test_few_tokens_are_computed_at_once(monkeypatch):
    monkeypatch.setattr(decoder_layers, "by_tiles", None)
    tiled = by_tiles_of(decoder("llama"), 24)
    learned(tiled, next_token(tiled))


def test_layer_that_draws_random_numbers_takes_no_tiles():
    model = decoder("llama", ("all",))
    block: Block = model.model.layers[0]
    block.mlp.down_proj.dropout = 0.1
    block.take_tiles()
    assert block.mlp.tile == 0
    assert decoder("llama").model.layers[0].mlp.tile == 0  # without checkpointing
