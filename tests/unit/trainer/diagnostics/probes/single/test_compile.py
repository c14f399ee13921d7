from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import compile as probe
from trainer.diagnostics.probes.verdict import Device

HANGING = """
    import sys, time
    from trainer.diagnostics.probes import entry
    from trainer.diagnostics.probes.single import compile as probe

    probe.compile_model = lambda network: time.sleep(600)
    sys.exit(entry.main("compile", probe.measure))
"""


@pytest.fixture
def compiler() -> None:
    """Skip where no C++ compiler is. A fixture, as it loads torch's compiler for seconds: not at collection."""
    if reason := probe.why_not(Device(kind="cpu", name="cpu", arch="x86_64")):
        pytest.skip(reason)


def test_probe_without_a_compiler_is_not_applicable_and_reports_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    verdict = probe.measure(Request(expect="cpu"))
    assert verdict.status == "not-applicable"
    assert "no compiler" in verdict.summary
    assert "CXX=/nonexistent/g++" in verdict.summary


@pytest.mark.usefixtures("compiler")
def test_compiler_that_hangs_is_a_timeout(make_probe: Any) -> None:
    verdict = runner.run(make_probe(HANGING, name="compile"), "cpu", 6.0)
    assert verdict.status == "timeout"


@pytest.mark.usefixtures("compiler")
def test_model_that_was_never_compiled_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "compile_model", lambda network: network)
    monkeypatch.setattr(probe, "compiled_graphs", lambda: 0)
    verdict = probe.measure(Request(expect="cpu"))
    assert [check.name for check in verdict.checks if check.status == "fail"] == ["graphs compiled"]


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A STAND-IN for the trainer's kernel and for Triton, which compile what `refusal` does not forbid."""
    made = SimpleNamespace(refusal=None, compiled=[])

    def compile_only(device: str) -> None:
        if made.refusal:
            raise made.refusal
        made.compiled.append(device)

    stand_in = ModuleType("triton_softmax")
    stand_in.compile_only = compile_only  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trainer.models.fast.kernels.triton_softmax", stand_in)
    monkeypatch.setattr("trainer.models.fast.kernels.triton_softmax", stand_in, raising=False)
    monkeypatch.setattr(probe, "triton_version", lambda: {"triton": "3.3.1"})
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(probe.shutil, "which", lambda name: name)
    return made


MI50 = Device(kind="rocm", name="MI50", arch="gfx906")


def test_card_that_triton_compiles_nothing_for_is_not_applicable_and_named(triton: SimpleNamespace) -> None:
    triton.refusal = RuntimeError("PassManager::run failed")
    reason = probe.why_not(MI50)
    assert reason.endswith("Triton 3.3.1 compiles no kernel for gfx906 (RuntimeError: PassManager::run failed).")
    triton.refusal = Exception()
    assert "(Exception: no reason)" in probe.why_not(MI50)


def test_card_that_triton_compiles_for_is_probed(triton: SimpleNamespace) -> None:
    assert probe.why_not(MI50) == ""
    assert triton.compiled == ["cuda"]


def test_cpu_asks_no_triton(triton: SimpleNamespace) -> None:
    triton.refusal = RuntimeError("PassManager::run failed")
    assert probe.why_not(Device(kind="cpu", name="a CPU", arch="x86_64")) == ""


def trained(weights: list[float], losses: list[float]) -> probe.Trained:
    return probe.Trained(weights=torch.tensor(weights), losses=losses, first_s=1.0, step_s=1.0)


@pytest.mark.parametrize(
    ("weights", "losses", "failing"),
    [
        ([1.0, 2.0], [0.5, 0.25], []),
        ([1.0, 2.1], [0.5, 0.25], ["weights against eager"]),
        ([1.0, 2.0], [0.5, 0.30], ["losses against eager"]),
        ([1.0, float("nan")], [0.5, 0.25], ["weights against eager"]),
        ([1.0, 2.0], [0.5, float("nan")], ["losses against eager"]),
        ([1.0, 2.0002], [0.5, 0.25], []),
        ([1.0, 2.0003], [0.5, 0.25], ["weights against eager"]),
        ([1.0, 2.0], [0.5, 0.250024], []),
        ([1.0, 2.0], [0.5, 0.250026], ["losses against eager"]),
    ],
)
def test_weights_and_losses_are_compared(weights: list[float], losses: list[float], failing: list[str]) -> None:
    checks = probe.checks(trained([1.0, 2.0], [0.5, 0.25]), trained(weights, losses), 1, torch.tensor([0.5, 2.5]))
    assert [check.name for check in checks if check.status == "fail"] == failing
