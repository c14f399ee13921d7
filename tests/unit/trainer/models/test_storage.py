from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from trainer.models.build import build
from trainer.models.int8 import Int8Linear, int8_product, quantized
from trainer.models.storage import unpacked, with_zeros, without_zeros

MLP = {"kind": "mlp", "widths": [6, 16, 2], "activation": "ReLU"}


@given(st.integers(1, 9), st.integers(1, 17), st.floats(0, 1), st.integers(0, 99))
def test_weights_without_zeros_come_back_bit_identical(rows: int, columns: int, sparsity: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(rows, columns, generator=generator)
    weight[torch.rand(rows, columns, generator=generator) < sparsity] = 0
    weights = {"0.weight": weight, "0.bias": torch.randn(rows, generator=generator)}
    back = with_zeros(without_zeros(weights))
    assert back.keys() == weights.keys()
    assert all(torch.equal(back[name], weights[name]) for name in weights)


def test_damaged_mask_is_refused() -> None:
    packed = without_zeros({"w": torch.tensor([[0.0, 1.0], [2.0, 0.0]])})
    packed["w.mask"] = packed["w.mask"] | 0b10000000
    with pytest.raises(ValueError, match="w has 2 values for 3 places"):
        with_zeros(packed)


@given(st.integers(1, 40), st.integers(0, 99))
def test_int8_is_within_half_a_step_of_every_number(inputs: int, seed: int) -> None:
    """Weights and inputs are each off by at most half a step, so a product's error is bounded by both."""
    torch.manual_seed(seed)
    layer = nn.Linear(inputs, 5)
    rows = torch.randn(7, inputs)
    with torch.no_grad():
        exact, rounded = layer(rows), Int8Linear.of(layer)(rows)
    weight = layer.weight.detach()
    steps = rows.abs().amax(1, keepdim=True) / 127, weight.abs().amax(1) / 127
    most = inputs * (rows.abs().amax(1, keepdim=True) * steps[1] / 2 + weight.abs().amax(1) * steps[0] / 2)
    most = most + inputs * steps[0] * steps[1] / 4
    assert bool(((exact - rounded).abs() <= most * 1.001 + 1e-6).all())


@given(st.integers(1, 1040), st.integers(0, 99))
def test_product_of_whole_numbers_is_exact(inputs: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    whole = torch.randint(-127, 128, (3, inputs), generator=generator).float()
    weight = torch.randint(-127, 128, (4, inputs), dtype=torch.int8, generator=generator)
    assert torch.equal(int8_product(whole, weight), (whole.long() @ weight.t().long()).float())


@pytest.mark.parametrize("storage", ["dense", "bitmask", "int8"])
def test_storages_each_give_the_network_back(storage: str) -> None:
    network = build(MLP)
    if storage == "int8":
        network = quantized(copy.deepcopy(network))
    weights = network.state_dict()
    tensors = without_zeros(weights) if storage == "bitmask" else weights
    rows = torch.randn(5, 6)
    assert torch.equal(unpacked({**MLP, "storage": storage}, tensors)(rows), network(rows))


def test_unknown_storage_is_refused() -> None:
    with pytest.raises(ValueError, match="no storage called 'zip'"):
        unpacked({**MLP, "storage": "zip"}, {})
