from __future__ import annotations

import pytest
import torch
from torch import nn

from trainer.models.mlp import mlp


@pytest.mark.parametrize(
    ("hidden", "parameters"), [((32, 16), 12 * 32 + 32 + 32 * 16 + 16 + 16 + 1), ((), 13), ((4,), 57)]
)
def test_widths_decide_shape_and_size(hidden: tuple[int, ...], parameters: int) -> None:
    model = mlp(12, hidden)
    assert model(torch.zeros(7, 12)).shape == (7, 1)
    assert sum(value.numel() for value in model.parameters()) == parameters


def test_plain_stack_loads_the_weights() -> None:
    model = mlp(3, (5,))
    plain = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))
    plain.load_state_dict(model.state_dict())
    inputs = torch.randn(11, 3)
    assert torch.equal(plain(inputs), model(inputs))
