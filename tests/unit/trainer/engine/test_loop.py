from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.fixtures.training import OnMeasured
from trainer.data.loading.placement import TensorPartition
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.loop import fit, run_epoch
from trainer.engine.state import Epoch
from trainer.engine.training import Plan, Training, new_training
from trainer.models.losses import mean_loss
from trainer.runtime.errors import TrainerError


def linear_part(rows: int, seed: int = 0, noise: float = 0.1) -> TensorPartition:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, 3, generator=generator)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
    return TensorPartition(inputs=inputs, targets=targets + noise * torch.randn(rows, 1, generator=generator))


def training(model: nn.Module, train: TensorPartition, validation: TensorPartition, **changes: Any) -> Training:
    settings: dict[str, Any] = {"epochs": 3, "batch_size": 16, "learning_rate": 1e-2, "seed": 0}
    return new_training(model, train, validation, Plan(**(settings | changes)))


def run(model: nn.Module, train: TensorPartition, validation: TensorPartition, **changes: Any) -> list[Epoch]:
    report = changes.pop("on_epoch", lambda epoch: None)
    made = training(model, train, validation, **changes)
    made.callbacks = Callbacks([OnMeasured(report)])
    return fit(made)


def linear(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def test_linear_model_reaches_the_closed_form() -> None:
    train = linear_part(200)
    model = linear()
    run(model, train, train, epochs=150, batch_size=50)
    design = np.column_stack([train.inputs.numpy(), np.ones(200)])
    solution, squares, *_ = np.linalg.lstsq(design, train.targets.numpy(), rcond=None)
    found = np.append(model.weight.detach().numpy().ravel(), model.bias.item())
    np.testing.assert_allclose(found, solution.ravel(), atol=0.05)  # AdamW's decay pulls weights a little to zero
    assert mean_loss(model, train.inputs, train.targets) == pytest.approx(squares.item() / 200, rel=0.1)


@pytest.mark.parametrize("batch_size", [7, 16, 100])
def test_epochs_loss_counts_rows_not_batches(batch_size: int) -> None:
    train, model = linear_part(33), linear()
    before = mean_loss(model, train.inputs, train.targets)
    (epoch,) = run(model, train, train, epochs=1, batch_size=batch_size, learning_rate=1e-12)
    assert epoch.train_loss == pytest.approx(before, rel=1e-6)


def test_rows_are_each_used_once_an_epoch() -> None:
    seen: list[torch.Tensor] = []
    model = linear()
    model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    train = linear_part(33)
    run_epoch(training(model, train, train, batch_size=8))
    assert [len(batch) for batch in seen] == [8, 8, 8, 8, 1]
    rows = torch.cat(seen)
    assert torch.equal(rows[rows[:, 0].argsort()], train.inputs[train.inputs[:, 0].argsort()])
    assert not torch.equal(rows, train.inputs)


def test_best_weights_are_kept_not_the_last() -> None:
    train, validation = linear_part(20, noise=1.0), linear_part(20, seed=1, noise=1.0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
    history = run(model, train, validation, epochs=60, batch_size=4, learning_rate=3e-2)
    losses = [epoch.validation_loss for epoch in history]
    assert mean_loss(model, validation.inputs, validation.targets) == min(losses) < losses[-1]
    marked = [epoch.epoch for epoch in history if epoch.best]
    assert marked[-1] == losses.index(min(losses)) + 1


def test_epochs_are_reported_as_they_end() -> None:
    reported: list[Epoch] = []
    history = run(linear(), linear_part(40), linear_part(10), epochs=4, on_epoch=reported.append)
    assert reported == history
    assert [epoch.epoch for epoch in history] == [1, 2, 3, 4]
    assert all(epoch.seconds > 0 and epoch.rows_per_second == pytest.approx(40 / epoch.seconds) for epoch in history)


def test_seed_decides_the_order_and_nothing_else_does() -> None:
    weights = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        model = linear()
        torch.manual_seed(noise)  # the global generator is not the loop's
        run(model, linear_part(40), linear_part(10), seed=seed)
        weights.append(model.weight.detach().clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("broken", ["train", "validation"])
def test_loss_that_is_not_finite_stops_the_run(broken: str) -> None:
    parts = {"train": linear_part(40), "validation": linear_part(10)}
    parts[broken].targets[0] = math.inf
    reported: list[Epoch] = []
    with pytest.raises(TrainerError, match="RM530") as caught:
        run(linear(), parts["train"], parts["validation"], on_epoch=reported.append)
    assert caught.value.where == "epoch 1"
    assert reported == []


def test_divergence_is_noticed() -> None:
    with pytest.raises(TrainerError, match="RM530"):
        run(linear(), linear_part(40), linear_part(10), epochs=200, learning_rate=1e37)
