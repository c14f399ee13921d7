"""Gradients of operators and the loss curve: right ones pass, and each fault that is put in is found. On the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.learning import gradients, loss_curve
from trainer.diagnostics.probes.learning.operators import Operator, operators

OPERATORS = {operator.name: operator for operator in operators("cpu")}
SEED = 7
REFERENCE = [1.6 * 0.95**step for step in range(loss_curve.STEPS)]


class DropTerm(torch.autograd.Function):
    """Passes a tensor through, and loses the largest element of its gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *given: torch.Tensor) -> torch.Tensor:
        gradient = given[0].clone(memory_format=torch.contiguous_format)
        gradient.view(-1)[gradient.abs().argmax()] = 0
        return gradient


class Scale(torch.autograd.Function):
    """Passes a tensor through, and scales its gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *given: torch.Tensor) -> tuple[torch.Tensor, None]:
        return given[0] * ctx.factor, None


def spoiled(operator: Operator, fault: Callable[[torch.Tensor], torch.Tensor], place: int) -> Operator:
    """Return the operator whose gradient of one input goes through `fault`."""

    def function(*inputs: torch.Tensor) -> torch.Tensor:
        return operator.function(*(fault(x) if i == place else x for i, x in enumerate(inputs)))

    return replace(operator, function=function)


def drop(tensor: torch.Tensor) -> torch.Tensor:
    return DropTerm.apply(tensor)  # type: ignore[no-untyped-call,no-any-return]


@pytest.mark.parametrize("name", OPERATORS)
def test_gradient_of_a_sound_operator_passes_and_one_dropped_term_of_each_input_fails(name: str) -> None:
    operator = OPERATORS[name]
    assert gradients.gradient_error(operator, "cpu", SEED) <= gradients.LIMIT / 10
    for place in range(len(operator.shapes)):
        assert gradients.gradient_error(spoiled(operator, drop, place), "cpu", SEED) > gradients.LIMIT * 10


@pytest.mark.parametrize(("off", "passes"), [(0.5, True), (2.0, False)])
def test_limit_of_a_gradient_is_where_it_is_stated(off: float, passes: bool) -> None:
    def fault(tensor: torch.Tensor) -> torch.Tensor:
        return Scale.apply(tensor, 1 + off * gradients.LIMIT)  # type: ignore[no-untyped-call,no-any-return]

    operator = OPERATORS["tanh"]
    error = gradients.gradient_error(spoiled(operator, fault, 0), "cpu", SEED)
    assert (error <= gradients.LIMIT) == passes


def test_gradient_that_is_nan_fails() -> None:
    def fault(tensor: torch.Tensor) -> torch.Tensor:
        return Scale.apply(tensor, float("nan"))  # type: ignore[no-untyped-call,no-any-return]

    error = gradients.gradient_error(spoiled(OPERATORS["linear"], fault, 0), "cpu", SEED)
    assert math.isnan(error)
    assert gradients._check("linear", error).status == "fail"


def test_cpu_passes_and_names_its_worst_operator() -> None:
    verdict = gradients.measure(Request(expect="cpu"))
    assert verdict.status == "pass", verdict.summary
    assert len(verdict.checks) == len(OPERATORS) + 2
    assert any(number.name.startswith("worst gradient: ") for number in verdict.numbers)


def test_operator_with_a_wrong_backward_fails_the_probe_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = spoiled(OPERATORS["gelu"], drop, 0)
    monkeypatch.setattr(gradients, "operators", lambda device: [OPERATORS["linear"], wrong])
    verdict = gradients.measure(Request(expect="cpu"))
    assert verdict.status == "fail"
    assert "gradient of gelu" in verdict.summary


@pytest.mark.parametrize(("off", "statuses"), [(0.9, ["pass", "pass"]), (1.1, ["fail", "pass"])])
def test_limit_of_the_curve_is_where_it_is_stated(off: float, statuses: list[str]) -> None:
    shifted = [*REFERENCE]
    shifted[40] += off * gradients.CURVE_LIMIT * REFERENCE[0]
    assert [check.status for check in gradients.curve_checks(shifted, REFERENCE)] == statuses


def test_inputs_keep_away_from_the_kink_and_from_each_other() -> None:
    generator = torch.Generator().manual_seed(SEED)
    for count in range(1, 40):
        drawn = gradients._draw((count,), generator, positive=False)
        assert float(drawn.abs().min()) >= 0.013
        assert count == 1 or float(drawn.sort().values.diff().min()) > 100 * gradients.STEP
