"""The rate of a small network counts where it learns."""

from __future__ import annotations

import pytest

from trainer.diagnostics.bench import small_network
from trainer.diagnostics.probes.entry import Request

MOMENT = Request(expect="cpu", seconds=0.02)


@pytest.mark.usefixtures("one_thread")
def test_network_that_learns_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_network, "RATE", 0.0)
    assert small_network.measure(MOMENT).status == "fail"
