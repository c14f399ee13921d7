"""Blocks over 4-bit weights take the own kernel where Triton is there and what it gives is right."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.fast_blocks import decoder, request, wrapped
from trainer.models.adapters.nf4 import dequantize
from trainer.models.fast import choose, own_gelu, own_nf4

BF16 = torch.bfloat16
COMPILED = "adapters folded, compiled elementwise"


@pytest.fixture
def there(monkeypatch):
    """Triton is there; a STAND-IN for the kernel computes what plain torch does."""
    monkeypatch.setattr(own_gelu, "there", lambda: True)
    monkeypatch.setattr(own_nf4, "dequantized", dequantize)


def blocks_of(model):
    return list(model.decoder.model.layers)


@pytest.mark.parametrize(
    ("dense", "dtype", "expected"), [(False, BF16, True), (True, BF16, False), (False, torch.float32, False)]
)
def test_kernel_is_there_for_4_bit_weights_whose_products_have_16_bits(there, dense, dtype, expected):
    model = wrapped(decoder("qwen2", ("all",), quantized=not dense))
    assert own_nf4.there(blocks_of(model), dtype) is expected


def test_kernel_is_not_there_for_weights_that_are_held_dense_or_without_triton(there, monkeypatch):
    model = wrapped(decoder("qwen2", ("all",), quantized=True))
    assert own_nf4.there(blocks_of(model), BF16)
    monkeypatch.setattr(own_gelu, "there", lambda: False)
    assert not own_nf4.there(blocks_of(model), BF16)
    monkeypatch.setattr(own_gelu, "there", lambda: True)
    for module in model.modules():
        if hasattr(module, "hold_dense"):
            module.hold_dense(BF16)
    assert not own_nf4.there(blocks_of(model), BF16)


@pytest.mark.parametrize(
    ("wrong", "refused", "name"),
    [(False, {}, choose.OWN_NF4), (True, {}, COMPILED), (False, {"triton": "no"}, COMPILED)],
)
def test_blocks_use_the_kernel_unless_its_values_are_wrong_or_triton_is_refused(
    there, quick, monkeypatch, wrong, refused, name
):
    if wrong:
        monkeypatch.setattr(own_nf4, "dequantized", lambda *given: dequantize(*given).mul_(1.5))
    model = wrapped(decoder("qwen2", ("all",), quantized=True, dtype=torch.float32))
    choose.hold_frozen_weights_in(model, BF16)
    chosen = choose.use_fast(model, request(dtype=BF16, refused=refused))
    assert chosen.names()["blocks"] == name
