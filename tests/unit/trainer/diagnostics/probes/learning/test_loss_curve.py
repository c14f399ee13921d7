"""A loss curve shows whether a backward pass is right."""

from __future__ import annotations

import pytest
import torch

from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.learning import gradients, loss_curve
from trainer.diagnostics.probes.learning.operators import operators

OPERATORS = {operator.name: operator for operator in operators("cpu")}


def test_backward_that_gives_nan_in_training_alone_fails_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = loss_curve.losses

    def losses(device: str, dtype: torch.dtype, seed: int) -> list[float]:
        found = sound(device, dtype, seed)
        return found[:30] + [float("nan")] * 30 if dtype == torch.float32 else found

    monkeypatch.setattr(loss_curve, "losses", losses)
    monkeypatch.setattr(gradients, "operators", lambda device: [OPERATORS["linear"]])
    verdict = gradients.measure(Request(expect="cpu"))
    assert verdict.status == "fail"
    assert "loss curve" in verdict.summary


@pytest.mark.parametrize(("rest", "status"), [(0.49, "pass"), (0.51, "fail")])
def test_network_that_hardly_learns_shows_nothing(rest: float, status: str) -> None:
    flat = [1.6, *[1.6 * rest] * (loss_curve.STEPS - 1)]
    assert [check.status for check in gradients.curve_checks(flat, flat)] == ["pass", status]


def test_gap_of_two_curves_is_in_units_of_the_references_first_loss() -> None:
    assert loss_curve.largest_gap([4.0, 2.5, 1.0], [4.0, 2.0, 1.25]) == 0.125
    with pytest.raises(ValueError, match="longer"):
        loss_curve.largest_gap([4.0], [4.0, 2.0])
