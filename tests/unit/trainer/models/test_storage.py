from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.models.build import build
from trainer.models.int8 import quantized
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
