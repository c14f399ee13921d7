from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import amp
from trainer.diagnostics.probes.verdict import Verdict

UNSKIPPING = """
    import sys, torch
    from trainer.diagnostics.probes.single import amp
    from trainer.diagnostics.probes import entry

    class Unskipping(torch.amp.GradScaler):
        def step(self, optimizer):
            return optimizer.step()

        def update(self):
            pass

    amp.make_scaler = lambda device: Unskipping("cpu", init_scale=amp.INITIAL_SCALE)
    sys.exit(entry.main("amp", amp.measure))
"""


def failed(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if check.status == "fail"}


class SkipsEverything(torch.amp.GradScaler):
    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        self.unscale_(optimizer)


class KeepsTheScale(torch.amp.GradScaler):
    def update(self, new_scale: Any = None) -> None:
        super().update(new_scale=amp.INITIAL_SCALE)


class ForgetsToUnscale(torch.amp.GradScaler):
    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        if all(torch.isfinite(gradient).all() for gradient in gradients):
            for gradient in gradients:
                gradient.mul_(-1.0)
        return super().step(optimizer)


def test_cpu_trains_in_bf16() -> None:
    verdict = amp.measure(Request(expect="cpu"))
    assert verdict.status == "pass", verdict.summary
    assert "bfloat16 autocast" in verdict.summary
    assert {check.status for check in verdict.checks} == {"pass"}


@pytest.mark.parametrize(
    ("scaler", "names"),
    [
        (SkipsEverything, {"loss falls", "other steps are taken"}),
        (KeepsTheScale, {"overflow halves the scale"}),
        (ForgetsToUnscale, {"loss falls", "training goes on"}),
    ],
)
def test_faulty_scaler_is_seen(
    monkeypatch: pytest.MonkeyPatch, scaler: Callable[..., torch.amp.GradScaler], names: set[str]
) -> None:
    monkeypatch.setattr(amp, "make_scaler", lambda device: scaler("cpu", init_scale=amp.INITIAL_SCALE))
    assert failed(amp.measure(Request(expect="cpu"))) == names


def test_scaler_that_does_not_skip_fails_through_the_runner(make_probe: Any) -> None:
    verdict = runner.run(make_probe(UNSKIPPING, name="amp"), "cpu")
    assert verdict.status == "fail"
    assert {"overflow leaves the weights alone", "overflow halves the scale"} <= failed(verdict)


def test_autocast_that_lowers_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda device, dtype, **_: honest(device, dtype=dtype, enabled=False))
    assert failed(amp.measure(Request(expect="cpu"))) == {"autocast computes in bfloat16"}


def test_low_precision_loss_that_is_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = amp.Trainer.loss

    def off(self: amp.Trainer, autocast: bool = True) -> torch.Tensor:
        return honest(self, autocast) * (1.05 if autocast else 1.0)

    monkeypatch.setattr(amp.Trainer, "loss", off)
    assert failed(amp.measure(Request(expect="cpu"))) == {"bfloat16 loss against fp32"}


class Fixed:
    """A STAND-IN for a trainer of a known loss in each precision."""

    def __init__(self, low: float) -> None:
        self.low = low

    def loss(self, autocast: bool = True) -> torch.Tensor:
        return torch.tensor(self.low if autocast else 1.0, dtype=torch.float64)

    def product_dtype(self) -> str:
        return "bfloat16"


@pytest.mark.parametrize(
    ("name", "off", "status"),
    [
        ("float16", 0.99e-3, "pass"),
        ("float16", 1.01e-3, "fail"),
        ("bfloat16", 4.99e-3, "pass"),
        ("bfloat16", 5.01e-3, "fail"),
        ("bfloat16", float("nan"), "fail"),
    ],
)
def test_limit_of_a_low_precision_loss_is_where_it_is_stated(name: str, off: float, status: str) -> None:
    trainer: Any = Fixed(1.0 + off)
    assert amp.precision_checks(name, trainer)[1].status == status


@pytest.mark.parametrize(
    ("last", "failing"), [(0.499, set()), (0.501, {"loss falls"}), (float("nan"), {"loss falls", "losses are numbers"})]
)
def test_loss_has_to_fall_to_half(last: float, failing: set[str]) -> None:
    steps = [amp.Step(loss=1.0, scale_before=4.0, scale_after=4.0, weights_changed=9) for _ in range(amp.STEPS)]
    steps[amp.OVERFLOW_STEP] = amp.Step(loss=0.6, scale_before=4.0, scale_after=2.0, weights_changed=0)
    steps[-1] = amp.Step(loss=last, scale_before=4.0, scale_after=4.0, weights_changed=9)
    found = {check.name for check in amp.training_checks(steps) if check.status == "fail"}
    assert found - {"training goes on"} == failing


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -1e-9])
@pytest.mark.parametrize("at", [0, 5, amp.OVERFLOW_STEP, amp.STEPS - 1])
def test_loss_that_is_no_squared_error_fails_at_any_step(loss: float, at: int) -> None:
    steps = [amp.Step(loss=0.9**i, scale_before=4.0, scale_after=4.0, weights_changed=9) for i in range(amp.STEPS)]
    middle = amp.OVERFLOW_STEP
    steps[middle] = amp.Step(loss=steps[middle].loss, scale_before=4.0, scale_after=2.0, weights_changed=0)
    assert [check.name for check in amp.training_checks(steps) if check.status == "fail"] == []
    steps[at] = replace(steps[at], loss=loss)
    assert "losses are numbers" in {check.name for check in amp.training_checks(steps) if check.status == "fail"}
