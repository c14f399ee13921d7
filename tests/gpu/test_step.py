"""Captured graphs on a real card: the same bits as the loop's own steps, wherever a run is interrupted."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch import nn

from tests.fixtures.training import gone_on, interrupted, network, same, training, weights
from trainer.data.loading.placement import TensorPartition, mapped
from trainer.device.accelerator import make_reproducible
from trainer.device.precision import Precision
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Plan, Training, new_training
from trainer.models.mlp import mlp
from trainer.runtime.errors import TrainerError

pytestmark = pytest.mark.gpu
ROWS = 32 * 40 + 5


@pytest.fixture(autouse=True)
def deterministic() -> Any:
    """Deterministic kernels, as the trainer sets them; skips where no card is."""
    if not torch.cuda.is_available():
        pytest.skip("no accelerator: torch.cuda.is_available() is False")
    make_reproducible(seed=0, threads=1)
    yield
    torch.use_deterministic_algorithms(False)


def run(step: str, name: str = "fp32", noisy: bool = False, **more: Any) -> Training:
    """54 features, 40 whole batches and a rest: two long launches, eight short ones, and the loop's."""
    torch.manual_seed(1)
    precision = Precision(name=name, reason="test", device_type="cuda")
    layers = [nn.Linear(54, 32), nn.BatchNorm1d(32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1)]
    model = (nn.Sequential(*layers) if noisy else mlp(54, (32, 16))).to("cuda", precision.weights)
    generator = torch.Generator().manual_seed(0)
    made = (torch.randn(ROWS, width, generator=generator).to("cuda", precision.weights) for width in (54, 1))
    inputs, targets = made
    data = TensorPartition(inputs=inputs, targets=targets)
    few = TensorPartition(inputs=inputs[:100], targets=targets[:100])
    plan = Plan(epochs=3, batch_size=32, learning_rate=1e-2, seed=0)
    result = new_training(model, data, few, plan, precision=precision, **more)
    choice = choose_step(step, result)
    print(choice)
    assert (choice.name == "graph") == (step == "graph")
    assert choice.same_bits
    torch.manual_seed(2)
    return result


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16"])
@pytest.mark.parametrize("noisy", [False, True])
def test_captured_run_is_an_eager_one_to_the_bit(name: str, noisy: bool) -> None:
    assert same(weights(run("graph", name, noisy)), weights(run("eager", name, noisy)))


@pytest.mark.parametrize("step", [1, 15, 16, 17, 40, 41, 42, 100])
@pytest.mark.parametrize(("before", "after"), [("graph", "graph"), ("eager", "graph"), ("graph", "eager")])
def test_stopped_run_resumes_under_either_strategy(step: int, before: str, after: str) -> None:
    files = interrupted(partial(run, before, noisy=True), step)
    assert same(weights(gone_on(partial(run, after, noisy=True), files)), weights(run("eager", noisy=True)))


def test_auto_takes_the_graph_and_gives_the_evidence() -> None:
    made = training(model=mlp(3, (8, 4)), device="cuda")
    choice = choose_step("auto", made)
    print(choice)
    if torch.version.hip:
        assert "--step graph asks for it" in choice.reason
        return
    assert choice.name == "graph", choice.reason
    assert "bit-identical" in choice.reason


def test_scaler_stays_eager_and_reports_why() -> None:
    made = training("fp16", model=mlp(3, (8, 4)), device="cuda")
    assert "loss scaler" in choose_step("auto", made).reason
    with pytest.raises(TrainerError, match="RM585"):
        choose_step("graph", made)


def test_placements_give_the_same_bits() -> None:
    on_device = weights(training(device="cuda"))
    for lay in (lambda data: data, lambda data: mapped([data])):
        made = training(device="cuda", loader_workers=2)
        made.train = lay(TensorPartition(inputs=made.train.inputs.cpu(), targets=made.train.targets.cpu()))
        assert same(weights(made), on_device)


def test_network_with_dropout_draws_the_same_numbers() -> None:
    found, expected = (training(model=network(), device="cuda") for _ in range(2))
    choose_step("graph", found)
    torch.manual_seed(3)
    ended = {name: value.clone() for name, value in weights(found).items()}
    torch.manual_seed(3)
    assert same(ended, weights(expected))
