"""Modules made within SkipInit take nothing from the generator and have their shapes."""

from __future__ import annotations

import torch
from torch import nn

from trainer.models.decoder.skip_init import SkipInit


def test_skip_init_makes_layers_of_the_same_shapes_without_drawing():
    before = torch.get_rng_state()
    with SkipInit():
        layers = [nn.Linear(3, 5), nn.Embedding(7, 3), nn.LayerNorm(3)]
    assert torch.equal(torch.get_rng_state(), before)
    assert [tuple(layer.weight.shape) for layer in layers] == [(5, 3), (7, 3), (3,)]
    assert all(layer.weight.requires_grad for layer in layers)


def test_skip_init_ends_with_its_context_and_leaves_other_functions_alone():
    with SkipInit():
        drawn = torch.rand(3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(0)))
    before = torch.get_rng_state()
    nn.Linear(3, 5)
    assert not torch.equal(torch.get_rng_state(), before)
