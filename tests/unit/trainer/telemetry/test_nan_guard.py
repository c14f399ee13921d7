from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from trainer.cli import main
from trainer.models.mlp import mlp
from trainer.runtime.errors import TrainerError
from trainer.telemetry.layer_monitor import LayerMonitor, bad_gradient, non_finite_source
from trainer.telemetry.nan_guard import NanGuard, RecomputeHooks

ROWS, WIDTH = 60, 3


class Run:
    """A loop by hand, ten rows a step, with the guard's hooks where the trainer's loop has them."""

    def __init__(self, folder: Path, model: nn.Module | None = None, **options: object) -> None:
        torch.manual_seed(0)
        self.model = model or mlp(WIDTH, (4, 4))
        self.inputs, self.targets = torch.randn(ROWS, WIDTH), torch.randn(ROWS, 1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.guard = NanGuard(
            self.model,
            RecomputeHooks(
                fetch=lambda rows: (self.inputs[rows], self.targets[rows]),
                compute=self.compute,
                advance=self.optimizer.step,
                stateful=[self.optimizer],
            ),
            architecture={"kind": "mlp", "widths": [WIDTH, 4, 4, 1]},
            folder=folder,
            **options,
        )

    def compute(self, inputs: Tensor, targets: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(inputs), targets)
        loss.backward()
        return loss

    def steps(self, count: int) -> None:
        for step in range(1, count + 1):
            rows = torch.arange(10) + 10 * ((step - 1) % 6)
            self.guard.begin()
            self.guard.record(step, [rows], self.compute(self.inputs[rows], self.targets[rows]).reshape(1))
            self.optimizer.step()
        self.guard.check()


class FailingAt(nn.Module):
    """Passes values on until its nth call, then infinity, each time it is computed from the same state."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.call = call

    def forward(self, values: Tensor) -> Tensor:
        self.calls += 1
        return values * torch.where(self.calls == self.call, torch.inf, 1.0)


@pytest.mark.parametrize("every", [1, 4, 5, 100])
def test_layer_the_step_and_the_weights_before_it_are_found(tmp_path: Path, every: int) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(WIDTH, 4), FailingAt(5), nn.Linear(4, 1))
    run = Run(tmp_path, model, every=every)
    with pytest.raises(TrainerError) as caught:
        run.steps(12)
    assert (caught.value.code, caught.value.what) == ("RM506", "the output of layer 1 (FailingAt) is not finite")
    assert caught.value.where == "step 5"
    saved = torch.load(tmp_path / "nan-step-5.pt", weights_only=True)
    assert saved["model"]["1.calls"] == 4
    assert torch.equal(saved["inputs"], run.inputs[40:50])
    torch.manual_seed(1)
    undisturbed = Run(tmp_path, nn.Sequential(nn.Linear(WIDTH, 4), FailingAt(99), nn.Linear(4, 1)))
    torch.manual_seed(1)
    undisturbed.model[0].load_state_dict(nn.Linear(WIDTH, 4).state_dict())
    undisturbed.model[2].load_state_dict(nn.Linear(4, 1).state_dict())
    undisturbed.steps(4)
    assert all(torch.equal(saved["model"][name], value) for name, value in undisturbed.model.state_dict().items())


def test_batch_that_is_not_finite_is_named_as_such(tmp_path: Path) -> None:
    run = Run(tmp_path, every=4)
    run.inputs[33, 1] = torch.nan
    with pytest.raises(TrainerError, match="the inputs of the batch is not finite"):
        run.steps(6)
    assert (tmp_path / "nan-step-4.pt").exists()


def test_replay_shows_the_failure_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(tmp_path)
    with torch.no_grad():
        run.model[2].weight[0, 0] = 3e38  # finite, but its products are not
    run = Run(tmp_path, run.model)  # the guard keeps the weights that it finds at first
    with pytest.raises(TrainerError) as caught:
        run.steps(3)
    file = str(caught.value.next).removeprefix("python -m trainer replay ")
    assert main(["replay", file]) == 0
    captured = capsys.readouterr()
    event = json.loads(captured.out)
    assert (
        event["suspect"]
        == event["recorded"]
        == "the " + str(caught.value.what).removeprefix("the ").removesuffix(" is not finite")
    )
    assert "not finite" in captured.err


def test_weights_without_a_failure_are_those_without_the_guard(tmp_path: Path) -> None:
    guarded, bare = Run(tmp_path, every=2), Run(tmp_path, every=0)
    for run in (guarded, bare):
        run.steps(12)
    assert all(torch.equal(a, b) for a, b in zip(guarded.model.parameters(), bare.model.parameters(), strict=True))
    assert list(tmp_path.iterdir()) == []


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


def test_finding_of_one_rank_ends_all(tmp_path: Path) -> None:
    run = Run(tmp_path, agree=lambda bad: True)
    with pytest.raises(TrainerError, match="another rank's loss is not finite"):
        run.steps(2)
    assert list(tmp_path.iterdir()) == []


def test_loss_that_overflows_over_finite_outputs_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.targets[:] = 1e30
    with pytest.raises(TrainerError, match="the loss of finite outputs is not finite"):
        run.steps(1)


def test_model_too_large_to_keep_twice_is_reported(tmp_path: Path) -> None:
    run = Run(tmp_path, most_bytes=10)
    run.inputs[5, 0] = torch.nan
    with pytest.raises(TrainerError) as caught:
        run.steps(2)
    assert "no second copy of the model is kept" in str(caught.value.why)
    assert (tmp_path / "nan-step-1.pt").exists()


def test_failure_that_does_not_repeat_is_reported(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.guard.record(1, [torch.arange(10)], torch.tensor([torch.nan]))
    with pytest.raises(TrainerError) as caught:
        run.guard.check()
    assert "did not repeat" in str(caught.value.why)


def test_layers_are_watched_only_inside_the_block() -> None:
    model = mlp(WIDTH, (4,))
    with LayerMonitor(model).watching() as monitor:
        model(torch.full((2, WIDTH), torch.inf))
    assert monitor.first_bad() == "0 (Linear)"
    monitor.sums.clear()
    model(torch.ones(2, WIDTH))
    assert monitor.first_bad() is None


@pytest.mark.parametrize("content", [b"", b"no archive", "text", {"kind": "other"}])
def test_file_that_is_no_replay_is_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    assert main(["replay", str(path)]) == 2
    assert main(["replay", str(tmp_path / "absent.pt")]) == 2


def test_code_in_a_replay_file_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    torch.save({"kind": Trap()}, tmp_path / "x.pt")
    assert main(["replay", str(tmp_path / "x.pt")]) == 2
    assert "RM508" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()
