"""Memory shared between processes, denied or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.made_up_ranks import PROBES, made_up
from trainer.diagnostics.probes.pair.ranks import ipc


@pytest.mark.parametrize("name", PROBES)
def test_ipc_that_is_denied_is_found(name: str, monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    monkeypatch.setattr(ipc, "error", lambda seconds: "RuntimeError: HIP error: invalid device pointer")
    verdict = made_up(monkeypatch, name, worked=("nccl-no-p2p", "host"))
    assert verdict.summary.endswith("(likely: card memory cannot be shared between processes (IPC denied)).")
    assert verdict.diagnosis["evidence"] == "RuntimeError: HIP error: invalid device pointer"
