from __future__ import annotations

import json
from pathlib import Path
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
    monkeypatch.setattr(conv, "found_bytes", lambda: 4096)
    check = conv.in_process("find mode fast", 1, conv.ModeRequest(expect="rocm", seconds=20))
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
    found = conv.in_process("find mode normal", 1, conv.ModeRequest(expect="rocm", seconds=20))
    assert found == [result]
    assert seen["MIOPEN_FIND_MODE"] == "1"
    assert [check.status for check in conv.judge("x", [result])] == ["pass", "pass", "fail", "pass"]


def test_find_mode_that_still_searches_at_the_limit_counts_neither_way_and_what_it_found_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = iter([4096, 4096 + 2048])
    ended = Outcome(stdout="", stderr="", seconds=1.0, returncode=-9, timed_out=True)
    monkeypatch.setattr(conv, "run_limited", lambda *_, **__: ended)
    monkeypatch.setattr(conv, "found_bytes", lambda: next(sizes))
    check = conv.in_process("find mode normal", 1, conv.ModeRequest(expect="rocm", seconds=20))
    assert isinstance(check, Check)
    assert (check.status, "kept 2 KiB" in check.detail) == ("not-applicable", True)


@pytest.mark.parametrize(
    ("spent", "number", "seconds"), [(0, 0, 60), (50, 0, 60), (150, 0, 35), (150, 3, 60), (282, 2, 4), (300, 3, -10)]
)
def test_modes_share_the_time_that_a_cold_default_mode_leaves(
    monkeypatch: pytest.MonkeyPatch, spent: float, number: int, seconds: float
) -> None:
    monkeypatch.setattr(conv.time, "monotonic", lambda: spent)
    monkeypatch.setattr(conv, "found_bytes", lambda: 1)
    found = conv.Budget(ends=290.0, kept=0).share_of(Request(expect="rocm", timeout_seconds=300), number)
    assert found == conv.ModeRequest(expect="rocm", seconds=seconds, first_use=True)


@pytest.mark.parametrize(("first_use", "status"), [(True, "not-applicable"), (False, "fail")])
def test_mode_without_time_fails_unless_miopen_compiled_meanwhile(
    monkeypatch: pytest.MonkeyPatch, first_use: bool, status: str
) -> None:
    monkeypatch.setattr(conv, "run_limited", None)
    short = conv.ModeRequest(expect="rocm", seconds=conv.LEAST_SECONDS - 0.1, first_use=first_use)
    found = conv.in_process("find mode fast", 1, short)
    assert isinstance(found, Check)
    assert found.status == status


def test_summary_counts_the_modes_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = Check(name="without oneDNN", status="not-applicable", detail="no time was left")
    monkeypatch.setattr(conv, "in_mode", lambda *_: left_out)
    found = conv.measure(Request(expect="cpu"))
    assert found.status == "pass"
    assert found.summary.endswith("in 1 of 2 modes.")


@pytest.mark.parametrize("dtype", conv.LIMITS)
@pytest.mark.parametrize("place", range(len(conv.PARTS)))
@pytest.mark.parametrize(("share", "status"), [(0.99, "pass"), (1.01, "fail"), (float("nan"), "fail")])
def test_limit_of_a_convolution_is_where_it_is_stated(dtype: str, place: int, share: float, status: str) -> None:
    errors = tuple(share * conv.LIMITS[dtype] if part == place else 0.0 for part in range(len(conv.PARTS)))
    result = conv.Result(shape="3x3", dtype=dtype, errors=errors, not_finite=0, workspace_bytes=0)
    expected = ["pass"] * (len(conv.PARTS) + 1)
    expected[place] = status
    assert [check.status for check in conv.judge("default", [result])] == expected


def test_kernels_that_miopen_found_are_counted_in_its_folders(tmp_path: Path) -> None:
    folders = {"MIOPEN_USER_DB_PATH": str(tmp_path / "db"), "MIOPEN_CUSTOM_CACHE_DIR": str(tmp_path / "cache")}
    assert conv.found_bytes(folders) == 0
    (tmp_path / "db/3.5").mkdir(parents=True)
    (tmp_path / "db/3.5/gfx1100.ufdb.txt").write_bytes(b"x" * 10)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/gfx1100.ukdb").write_bytes(b"x" * 32)
    assert conv.found_bytes(folders) == 42
    assert conv.found_bytes({"HOME": str(tmp_path)}) == 0


def test_zero_in_two_thousand_outputs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = conv.parts

    def parts(tensors: Any, shape: conv.Shape) -> list[torch.Tensor]:
        output, *gradients = honest(tensors, shape)
        if output.dtype != torch.float64:
            output = output.contiguous()
            output.view(-1)[::2000] = 0
        return [output, *gradients]

    monkeypatch.setattr(conv, "parts", parts)
    names = failed(conv.measure(Request(expect="cpu")))
    assert {"default float32 output", "default bfloat16 output"} <= set(names)
