from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import conv
from trainer.diagnostics.probes.verdict import Check, Verdict
from trainer.runtime.child_process import Outcome


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_cpu_passes_with_and_without_onednn() -> None:
    verdict = conv.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert "no card was tried" in verdict.summary
    assert sum(check.name.startswith("without oneDNN") for check in verdict.checks) == 2 * len(conv.PARTS) + 1


def test_wrong_weight_gradient_is_seen_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = conv.parts

    def parts(tensors: Any, shape: conv.Shape) -> list[torch.Tensor]:
        output, of_input, of_weight = honest(tensors, shape)
        return [output, of_input, of_weight * (1.0 if output.dtype == torch.float64 else 1.1)]

    monkeypatch.setattr(conv, "parts", parts)
    names = failed(conv.measure(Request(expect="cpu")))
    assert names
    assert all(name.endswith("weight gradient") for name in names)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ({"returncode": -9, "timed_out": True}, "no end within 20 s"),
        ({"returncode": -11, "timed_out": False}, "SIGSEGV"),
        ({"returncode": 1, "timed_out": False}, "1"),
    ],
)
def test_find_mode_that_hangs_or_dies_is_a_failed_check(
    monkeypatch: pytest.MonkeyPatch, outcome: dict[str, Any], words: str
) -> None:
    ended = Outcome(stdout="", stderr="", seconds=1.0, **outcome)
    monkeypatch.setattr(conv, "run_limited", lambda *_, **__: ended)
    check = conv.in_process("find mode fast", 1, Request(expect="rocm", timeout_seconds=100))
    assert isinstance(check, Check)
    assert check.status == "fail"
    assert check.detail == f"MIOPEN_FIND_MODE=2: {words}"


def test_results_of_a_modes_process_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    result = conv.Result(shape="1x1", dtype="float32", errors=(0.0, 1e-7, 0.5), not_finite=0, workspace_bytes=5)
    seen: dict[str, Any] = {}

    def run_limited(argv: list[str], *, seconds: float, env: dict[str, str]) -> Outcome:
        seen.update(env)
        return Outcome(returncode=0, timed_out=False, stdout=json.dumps([vars(result)]), stderr="", seconds=1.0)

    monkeypatch.setattr(conv, "run_limited", run_limited)
    found = conv.in_process("find mode normal", 1, Request())
    assert found == [result]
    assert seen["MIOPEN_FIND_MODE"] == "1"
    assert [check.status for check in conv.judge("x", [result])] == ["pass", "pass", "fail", "pass"]
