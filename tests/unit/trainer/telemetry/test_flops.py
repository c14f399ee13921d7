from __future__ import annotations

import pytest
import torch
from torch import nn

from trainer.models.mlp import mlp
from trainer.telemetry.flops import flops_per_row, utilisation


def test_mlp_costs_two_flops_a_weight_forward_and_four_backward_but_no_gradient_of_the_input() -> None:
    model = mlp(12, (32, 16))
    weights = [layer.weight.numel() for layer in model if isinstance(layer, nn.Linear)]
    assert flops_per_row(model, torch.zeros(1, 12)) == 6 * sum(weights) - 2 * weights[0]


def test_counting_leaves_the_model_alone() -> None:
    model = mlp(4, (8,))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    flops_per_row(model, torch.zeros(1, 4))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_operation_that_torch_cannot_count_has_no_figure() -> None:
    class Odd(nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return values[values.nonzero()]

    assert flops_per_row(Odd(), torch.zeros(1, 4)) is None


@pytest.mark.parametrize(("flops", "peak"), [(None, 1e12), (1.0, None)])
def test_utilisation_is_absent_without_both_figures(flops, peak) -> None:
    assert utilisation(flops, 10.0, peak) is None


def test_utilisation_is_a_share() -> None:
    assert utilisation(1e6, 1e5, 1e12) == pytest.approx(0.1)
