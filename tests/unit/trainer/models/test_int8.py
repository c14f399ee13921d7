"""Linear layers of whole numbers."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from trainer.models.int8 import Int8Linear, int8_product


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
