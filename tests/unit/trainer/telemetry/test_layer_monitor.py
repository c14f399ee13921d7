"""The layer that first gave a number that is not finite."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.fixtures.guarded_runs import WIDTH, Run
from trainer.models.mlp import mlp
from trainer.runtime.errors import TrainerError
from trainer.telemetry.layer_monitor import LayerMonitor, bad_gradient, non_finite_source


class Root(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return torch.sqrt(values * 0)


def test_gradient_is_named_where_all_outputs_are_finite(tmp_path: Path) -> None:
    run = Run(tmp_path, nn.Sequential(nn.Linear(WIDTH, 4), Root(), nn.Linear(4, 1)))
    run.targets[:] += 1
    with pytest.raises(TrainerError) as caught:
        run.steps(3)
    assert (caught.value.what, caught.value.where) == ("the gradient of parameter 0.bias is not finite", "step 1")
    assert bad_gradient(run.model) == "0.bias"


def test_scaled_gradient_that_overflows_is_no_suspect(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with LayerMonitor(run.model).watching() as monitor:
        loss = run.compute(run.inputs[:10], run.targets[:10])
    next(run.model.parameters()).grad.fill_(torch.inf)
    assert non_finite_source(monitor, run.model, run.inputs[:10], loss, scaled=True) is None
    found = non_finite_source(monitor, run.model, run.inputs[:10], loss)
    assert found is not None
    assert found.place == "the gradient of parameter 0.weight"


def test_layers_are_watched_only_inside_the_block() -> None:
    model = mlp(WIDTH, (4,))
    with LayerMonitor(model).watching() as monitor:
        model(torch.full((2, WIDTH), torch.inf))
    assert monitor.first_bad() == "0 (Linear)"
    monitor.sums.clear()
    model(torch.ones(2, WIDTH))
    assert monitor.first_bad() is None
