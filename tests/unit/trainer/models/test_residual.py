"""Residual blocks add to what they were given."""

import pytest
import torch

from trainer.models.residual import Residual, residual

PLAIN = {"activation": "ReLU", "norm": "none", "dropout": 0.0}
ROWS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


def test_block_of_equal_width_whose_last_layer_is_zero_is_the_identity():
    block = Residual(3, 3, **PLAIN)
    torch.nn.init.zeros_(block.body[-1].weight)
    torch.nn.init.zeros_(block.body[-1].bias)
    assert torch.equal(block(ROWS), ROWS)


def test_block_of_another_width_adds_a_linear_shortcut_without_bias():
    block = Residual(3, 4, **PLAIN)
    assert block.shortcut.bias is None
    assert torch.equal(block(ROWS), block.shortcut(ROWS) + block.body(ROWS))


@pytest.mark.parametrize(("hidden", "outputs"), [([], 1), ([4], 2), ([4, 4, 3], 1)])
def test_network_has_a_block_for_each_width(hidden, outputs):
    network = residual(3, hidden, outputs, **PLAIN)
    assert sum(isinstance(layer, Residual) for layer in network) == len(hidden)
    assert network(ROWS).shape == (5, outputs)
