from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import allocator
from trainer.runtime.child_process import Outcome

GOOD = allocator.Found(
    batches=allocator.BATCHES,
    overlaps=0,
    live_peak=100,
    reserved_at=120,
    reserved_end=130,
    left_over=0,
    expandable=False,
)


def test_cpu_passes_and_states_whose_allocator_it_was() -> None:
    verdict = allocator.measure(Request(expect="cpu"))
    assert verdict.status == "pass"
    assert "no card's allocator was tried" in verdict.summary


def test_overlapping_tensors_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = torch.empty(allocator.ON_CPU, dtype=torch.uint8)

    def take(self: allocator.Memory, size: int, fill: int) -> torch.Tensor:
        return shared[:size].fill_(fill)

    monkeypatch.setattr(allocator.Memory, "take", take)
    verdict = allocator.measure(Request(expect="cpu"))
    assert [check.name for check in verdict.checks if check.status == "fail"] == [
        "system allocator overlapping tensors"
    ]


def test_run_that_dies_early_states_after_how_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, taken = allocator.Memory.take, []

    def take(self: allocator.Memory, size: int, fill: int) -> torch.Tensor:
        taken.append(size)
        if len(taken) > 40 * 2 * allocator.LAYERS:
            raise RuntimeError("HIP out of memory (injected)\nTried to allocate …")
        return honest(self, size, fill)

    monkeypatch.setattr(allocator.Memory, "take", take)
    verdict = allocator.measure(Request(expect="cpu"))
    (check,) = [check for check in verdict.checks if check.status == "fail"]
    assert (check.measured, check.detail) == (41, "HIP out of memory (injected)")


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, ""),
        ({"reserved_end": 150}, ""),  # a quarter more than after 30 batches
        ({"reserved_end": 151}, "growth"),
        ({"reserved_at": 200, "reserved_end": 200}, ""),  # twice what tensors held
        ({"reserved_at": 201, "reserved_end": 201}, "holes"),
        ({"left_over": 512}, "given back"),
        ({"ran_out": "out of memory"}, "ran out of memory"),
    ],
)
def test_findings_each_have_their_check(change: dict[str, Any], failing: str) -> None:
    checks = allocator.judge("x", replace(GOOD, **change))
    failed = [check.name for check in checks if check.status == "fail"]
    assert [failing in name for name in failed] == ([True] if failing else [])


def test_setting_that_torch_ignores_is_reported_and_one_that_dies_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [(0, json.dumps(asdict(GOOD))), (0, json.dumps(asdict(GOOD)))]
    seen: list[str] = []

    def run_limited(argv: list[str], *, seconds: float, env: dict[str, str]) -> Outcome:
        seen.append(env["PYTORCH_HIP_ALLOC_CONF"])
        code, stdout = ends.pop(0)
        return Outcome(returncode=code, timed_out=False, stdout=stdout, stderr="", seconds=1.0)

    monkeypatch.setattr(allocator, "run_limited", run_limited)
    checks, _ = allocator.under_settings(Request(expect="rocm"), seed=1)
    assert seen == ["expandable_segments:False", "expandable_segments:True"]
    assert checks[-1].status == "not-applicable"
    assert {check.status for check in checks[:-1]} == {"pass"}
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    ends[:] = [(-6, ""), (0, json.dumps(asdict(replace(GOOD, expandable=True))))]
    checks, _ = allocator.under_settings(Request(expect="rocm"), seed=1)
    assert checks[0].status == "fail"
    assert checks[0].detail == "ended by SIGABRT"
    assert {check.status for check in checks[1:]} == {"pass"}


@pytest.mark.parametrize(
    ("variable", "used"),
    [
        ({}, "off"),
        ({"PYTORCH_ALLOC_CONF": "max_split_size_mb:128"}, "off"),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments: True,max_split_size_mb:128"}, "on"),
        ({"PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True"}, "on"),
    ],
)
def test_allocator_settings_that_no_run_uses_count_neither_way(
    monkeypatch: pytest.MonkeyPatch, variable: dict[str, str], used: str
) -> None:
    for name in allocator.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    assert allocator.used() == used
    monkeypatch.setattr(allocator, "in_process", lambda *_: "ended by SIGSEGV")
    statuses = {check.name.split()[-1]: check.status for check in allocator.under_settings(Request(), seed=1)[0]}
    other = {"on": "off", "off": "on"}[used]
    assert statuses == {used: "fail", other: "not-applicable"}
