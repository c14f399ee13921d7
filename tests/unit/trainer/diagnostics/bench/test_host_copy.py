"""Copies between host and card are compared with what was sent."""

from __future__ import annotations

import pytest
import torch

from trainer.diagnostics.bench import host_copy
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request

MOMENT = Request(expect="cpu", seconds=0.02)


def test_copies_to_a_cpu_are_not_measured() -> None:
    verdict = host_copy.measure(MOMENT)
    assert (verdict.status, verdict.numbers) == ("not-applicable", ())


def test_copies_are_compared_with_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    here = placement.cpu()
    check, numbers = host_copy.copies("pageable", here, 0.01, size=4096)
    assert check.status == "pass"
    assert [number.unit for number in numbers] == ["GB/s", "%", "GB/s", "%"]
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, *_, **__: self)
    assert host_copy.copies("pageable", here, 0.01, size=4096)[0].status == "fail"
