"""The rate of a transformer's block counts where its gradients are finite."""

from __future__ import annotations

import pytest

from trainer.diagnostics.bench import transformer
from trainer.diagnostics.probes.entry import Request

MOMENT = Request(expect="cpu", seconds=0.02)


def test_gradients_that_are_not_finite_fail_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = transformer.forward
    monkeypatch.setattr(transformer, "forward", lambda *given: honest(*given) * float("inf"))
    assert transformer.measure(MOMENT).status == "fail"
