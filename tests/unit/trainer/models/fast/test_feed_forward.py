"""The adapted feed-forward layer: which tiles it takes, and what it keeps for the backward pass."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.fast_blocks import decoder
from trainer.models.decoder.tiles import TILE
from trainer.models.fast.elementwise import PLAIN
from trainer.models.fast.feed_forward import FeedForward, tile_of


def layer_of(tile, *, quantized=False):
    block = decoder("qwen2", ("all",), quantized=quantized).model.layers[0]
    return FeedForward(block, "silu", dtype=torch.float64, ops=PLAIN, tile=tile)


@pytest.mark.parametrize(("choice", "tile"), [("off", 0), ("selective", 0), ("full", TILE), ("offloaded", TILE)])
def test_tiles_are_for_layers_that_are_computed_again(choice, tile):
    assert tile_of(choice) == tile


@pytest.mark.parametrize(("quantized", "tokens"), [(False, 6), (True, 3)])
def test_tiles_over_4_bit_weights_are_half_as_long(quantized, tokens):
    layer = layer_of(6, quantized=quantized)
    assert [place.stop - place.start for place in layer.places(6)] == [tokens] * (6 // tokens)


def test_lean_form_keeps_its_inputs_alone():
    kept = []
    for tile in (0, 4):
        layer = layer_of(tile)
        width = layer.into.width + layer.into.room
        inputs = torch.randn(1, 9, width, dtype=torch.float64, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda value: kept.append(value.shape) or value, lambda value: value
        ):
            layer(inputs)
        if tile == 0:
            assert any(shape[-1] == layer.into.outputs for shape in kept)
            kept.clear()
    assert kept == [torch.Size([9, width])]


@pytest.mark.parametrize("quantized", [False, True])
def test_pass_without_its_adapters_has_the_gradient_of_the_base_although_they_are_on_again(quantized):
    layer = layer_of(0, quantized=quantized)
    adapters = [part.adapter for joint in (layer.into, layer.out) for part in joint.parts]
    inputs = torch.randn(1, 9, layer.into.width + layer.into.room, dtype=torch.float64, requires_grad=True)
    found = []
    for on_again in (True, False):
        for adapter in adapters:
            adapter.enabled = False
        outputs = layer(inputs)
        for adapter in adapters:
            adapter.enabled = on_again
        found.append(torch.autograd.grad(outputs.square().sum(), inputs)[0][..., : layer.into.width])
    assert torch.equal(*found)
    assert found[0].abs().max() > 0


@pytest.mark.parametrize("quantized", [False, True])
def test_pass_with_its_adapters_has_their_gradients_although_they_are_off_by_then(quantized):
    layer = layer_of(0, quantized=quantized)
    adapters = [part.adapter for joint in (layer.into, layer.out) for part in joint.parts]
    for adapter in adapters:
        torch.nn.init.normal_(adapter.lora_B)
    inputs = torch.randn(1, 9, layer.into.width + layer.into.room, dtype=torch.float64, requires_grad=True)
    found = []
    for enabled in (True, False):
        outputs = layer(inputs)
        for adapter in adapters:
            adapter.enabled = enabled
        found.append(torch.autograd.grad(outputs.square().sum(), [inputs, *layer.into.adapters]))
    for with_them, without in zip(*found, strict=True):
        assert torch.equal(with_them[..., : layer.into.width], without[..., : layer.into.width])
        assert with_them.abs().max() > 0
