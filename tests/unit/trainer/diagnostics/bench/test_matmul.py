"""A product is a figure where it is right, and left out where it would take too long."""

from __future__ import annotations

import pytest
import torch

from trainer.diagnostics.bench import matmul
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Verdict

MOMENT = Request(expect="cpu", seconds=0.02)


def units(verdict: Verdict) -> dict[str, str]:
    return {number.name: number.unit for number in verdict.numbers if number.unit != "%"}


def test_fast_wrong_product_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "mm", lambda left, right, out: out.zero_())
    assert matmul.measure(MOMENT).status == "fail"


def test_product_that_would_take_too_long_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "ON_CPU", ((64, 64, 64), (1 << 20, 1 << 10, 1 << 10)))
    verdict = matmul.measure(MOMENT)
    left_out = [check for check in verdict.checks if check.status == "not-applicable"]
    assert len(left_out) == 3
    assert "would take about" in left_out[0].detail
    assert set(units(verdict)) == {f"{each} 64x64x64" for each in matmul.LIMITS}
