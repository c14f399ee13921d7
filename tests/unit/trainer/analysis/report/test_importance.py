"""Importance of inputs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trainer.analysis.report.importance import importances
from trainer.models.losses import SQUARED_ERROR, loss_sum_of

pytestmark = pytest.mark.usefixtures("torch_as_before")


def test_input_that_is_not_used_has_no_importance() -> None:
    network = nn.Linear(3, 1)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0, 1.0, 3.0]]))
        network.bias.zero_()
    inputs = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    targets = network(inputs).detach()
    given = {"loss": loss_sum_of(SQUARED_ERROR), "repeats": 5}
    found = importances(network, inputs, targets, ["none", "one", "three"], seed=0, **given)
    assert [each.name for each in found] == ["three", "one", "none"]
    assert found[2].mean == found[2].deviation == 0
    variance = inputs.var(dim=0, unbiased=False)
    assert found[0].mean == pytest.approx(9 * 2 * variance[2].item(), rel=0.15)  # E (3x - 3x')^2 = 2 * 9 * var x
    assert importances(network, inputs, targets, ["none", "one", "three"], seed=0, **given) == found
    assert importances(network, inputs, targets, ["none", "one", "three"], seed=1, **given) != found
