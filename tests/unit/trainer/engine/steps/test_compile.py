"""Whether compiled code is kept. The compiler is a stand-in here; tests/gpu compiles for real."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

from tests.fixtures.training import training
from trainer.engine.steps import compile as compilation
from trainer.engine.steps.compile import Decision, Trial, compile_if_worth_it, decide, judge, missing
from trainer.runtime.errors import TrainerError


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))


def loss(of: nn.Module) -> Tensor:
    return of(torch.linspace(-1, 1, 32).view(8, 4)).square().mean()


class Slow(nn.Module):
    """A model whose eager twin is faster, or slower with a negative number of seconds."""

    def __init__(self, inner: nn.Module, factor: float = 1.0) -> None:
        super().__init__()
        self.inner, self.factor = inner, factor

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(0.01)
        result: Tensor = self.inner(x) * self.factor
        return result


@pytest.fixture(autouse=True)
def a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "missing", lambda device: "")


def test_compiled_step_with_another_result_is_never_kept() -> None:
    found = decide("auto", model(), loss, dtype=torch.float32, compile_=lambda m: Slow(m, factor=1.01))
    assert not found.use
    assert found.trial
    assert found.trial.loss_difference == pytest.approx(0.0201, rel=0.1)
    assert "disagree" in found.reason
    with pytest.raises(TrainerError, match="RM567"):
        decide("on", model(), loss, dtype=torch.float32, compile_=lambda m: Slow(m, factor=1.01))


def test_slower_step_is_kept_only_where_demanded() -> None:
    found = decide("auto", model(), loss, dtype=torch.float32, compile_=Slow)
    assert not found.use
    assert found.trial
    assert found.trial.compiled_s > found.trial.eager_s
    assert "not faster" in found.reason
    assert decide("on", model(), loss, dtype=torch.float32, compile_=Slow).use


def test_model_and_the_random_numbers_stay_as_they_are() -> None:
    tried = model()
    before = {name: value.clone() for name, value in tried.state_dict().items()}
    state = torch.get_rng_state()
    decide("auto", tried, loss, dtype=torch.float32, compile_=Slow)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in tried.state_dict().items())
    assert all(parameter.grad is None for parameter in tried.parameters())


def test_faster_and_equal_is_kept_and_the_numbers_are_reported() -> None:
    trial = Trial(loss_difference=1e-7, weight_difference=2e-6, eager_s=0.01, compiled_s=0.005, compile_s=12.0)
    found = judge("auto", trial, limit=1e-3)
    assert found.use
    assert "differ by 2.0e-06" in found.reason
    assert "2.00 times as fast; compiling took 12.0 s" in found.reason


@pytest.mark.parametrize("difference", [float("inf"), float("nan"), 2e-3])
def test_nan_is_no_agreement(difference: float) -> None:
    trial = Trial(loss_difference=difference, weight_difference=difference, eager_s=2, compiled_s=1, compile_s=1)
    assert not judge("auto", trial, limit=1e-3).use


def test_compiler_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: nn.Module) -> nn.Module:
        raise RuntimeError("no lowering\nlong text")

    found = decide("auto", model(), loss, dtype=torch.float32, compile_=fail)
    assert (found.use, found.reason) == (False, "it does not compile: RuntimeError: no lowering")
    with pytest.raises(TrainerError, match="RM567"):
        decide("on", model(), loss, dtype=torch.float32, compile_=fail)


def test_off_tries_nothing() -> None:
    def fail(_: nn.Module) -> nn.Module:
        raise AssertionError

    assert decide("off", model(), loss, dtype=torch.float32, compile_=fail) == Decision(
        use=False, reason="not asked for"
    )


def test_cpu_without_a_compiler_is_a_reported_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.shutil, "which", lambda name: None)
    assert "needs a C++ compiler" in missing(torch.device("cpu"))
    monkeypatch.setattr(compilation.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert missing(torch.device("cpu")) == ""


def test_card_without_a_c_compiler_for_tritons_driver_is_a_reported_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compilation.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(compilation.shutil, "which", lambda name: None)
    assert "no C compiler" in missing(torch.device("cuda"))
    monkeypatch.setattr(compilation.shutil, "which", lambda name: "/usr/bin/cc" if name == "cc" else None)
    assert "no C compiler" in missing(torch.device("cuda")), "Triton looks for gcc and clang alone"
    monkeypatch.setattr(compilation.shutil, "which", lambda name: "/usr/bin/gcc" if name == "gcc" else None)
    assert missing(torch.device("cuda")) == ""


@pytest.mark.parametrize(("requested", "code"), [("auto", None), ("on", "RM567")])
def test_compiler_that_failed_its_gate_is_not_tried(requested: str, code: str | None, monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch, "compile", None)
    run = training()
    if code:
        with pytest.raises(TrainerError, match=code):
            compile_if_worth_it(run, requested, "ddp", against="its gate failed")
    else:
        compile_if_worth_it(run, requested, "ddp", against="its gate failed")
        assert "left out: its gate failed" in capsys.readouterr().err
    assert run.forward is run.model
