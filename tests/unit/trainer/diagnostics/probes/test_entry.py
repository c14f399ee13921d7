from __future__ import annotations

import pytest

from trainer.diagnostics.probes import entry
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.placement import NoDeviceError
from trainer.diagnostics.probes.verdict import Verdict


def raising(error: Exception) -> entry.Measure:
    def measure(request: Request) -> Verdict:
        raise error

    return measure


def test_missing_device_is_a_status_of_its_own_and_keeps_the_versions() -> None:
    verdict = entry.guarded("p", raising(NoDeviceError("No rocm card.", {"torch": "2.7.1"})), Request())
    assert (verdict.status, verdict.summary, verdict.versions) == ("no-device", "No rocm card.", {"torch": "2.7.1"})


def test_missing_package_is_named() -> None:
    verdict = entry.guarded("p", raising(ModuleNotFoundError("no", name="torch")), Request())
    assert (verdict.status, verdict.summary) == ("fail", "torch is not installed here.")


def test_other_exceptions_fail_with_their_first_line_and_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = entry.guarded("p", raising(RuntimeError("HIP error: invalid device function\nCompile with")), Request())
    assert (verdict.status, verdict.summary) == ("fail", "RuntimeError: HIP error: invalid device function")
    assert "Traceback" in capsys.readouterr().err


def test_exception_without_a_message_is_a_verdict_too() -> None:
    assert entry.guarded("p", raising(MemoryError()), Request()).summary == "MemoryError: no message"


def test_request_comes_from_the_command_line() -> None:
    assert entry.parse_request(["--expect", "rocm", "--timeout", "9.5"]) == Request(expect="rocm", timeout_seconds=9.5)
    assert entry.parse_request([]) == Request()
    with pytest.raises(SystemExit) as raised:
        entry.parse_request(["--expect", "tpu"])
    assert raised.value.code == 2
