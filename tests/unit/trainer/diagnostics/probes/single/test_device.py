from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import placement, runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import device
from trainer.diagnostics.probes.verdict import Device, Verdict

VANISHING = """
    import sys, torch
    from trainer.diagnostics.probes.single import device
    from trainer.diagnostics.probes import entry

    def gone(index):
        raise RuntimeError("HIP error: no ROCm-capable device is detected")

    torch.version.hip, torch.cuda.is_available, torch.cuda.device_count = "6.3", lambda: True, lambda: 1
    torch.cuda.get_device_properties = gone
    sys.exit(entry.main("device", device.measure))
"""


def statuses(verdict: Verdict) -> dict[str, str]:
    return {check.name: check.status for check in verdict.checks}


def test_cpu_passes_and_reports_that_no_card_was_examined() -> None:
    verdict = device.measure(Request(expect="cpu"))
    assert verdict.status == "pass"
    assert verdict.summary.startswith("No card was examined")
    assert statuses(verdict)["cards"] == "not-applicable"
    assert {number.unit for number in verdict.numbers} == {"cards", "bytes", "MHz", "processors"}


@pytest.mark.parametrize("path", ["send_and_return", "invert_on"])
def test_wrong_byte_is_seen(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    honest = getattr(device, path)

    def corrupt(block: torch.Tensor, target: str) -> torch.Tensor:
        returned = honest(block, target).clone()
        returned[12345] ^= 1
        assert isinstance(returned, torch.Tensor)
        return returned

    monkeypatch.setattr(device, path, corrupt)
    verdict = device.measure(Request(expect="cpu"))
    assert verdict.status == "fail"
    assert [check.measured for check in verdict.checks if check.status == "fail"] == [1]


def test_card_without_free_memory_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "memory", lambda target: (1 << 34, 1 << 20))
    assert statuses(device.measure(Request(expect="cpu")))["cpu free memory"] == "fail"


def test_drivers_own_version_is_named_where_it_has_one(tmp_path: Path) -> None:
    card = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
    assert device.driver_version(card, tmp_path) == {"kernel": platform.release()}
    (tmp_path / "amdgpu").mkdir()
    (tmp_path / "amdgpu" / "version").write_text("6.10.5\n")
    assert device.driver_version(card, tmp_path)["amdgpu driver"] == "6.10.5"
    assert device.driver_version(placement.cpu(), tmp_path) == {"kernel": platform.release()}


def test_device_that_vanishes_is_a_failure_and_no_crash(make_probe: Any) -> None:
    verdict = runner.run(make_probe(VANISHING, name="device"), "rocm")
    assert verdict.status == "fail"
    assert verdict.summary == "RuntimeError: HIP error: no ROCm-capable device is detected"
    assert "Traceback" in verdict.stderr_tail
