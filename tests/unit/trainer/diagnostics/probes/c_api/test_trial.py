from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.diagnostics.probes.c_api import trial
from trainer.diagnostics.probes.c_api.bindings import CUDA, HIP, Interface
from trainer.diagnostics.probes.c_api.loading import Library, LibraryError
from trainer.diagnostics.probes.c_api.trial import Findings, Report, examine, read
from trainer.runtime.child_process import Outcome


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make these libraries the only ones that can be loaded."""

    def install(*libraries: Library) -> None:
        by_stem = {library.path.name.removeprefix("lib").partition(".")[0]: library for library in libraries}

        def load(stem: str) -> Library:
            if stem not in by_stem:
                raise LibraryError(f"lib{stem} is not installed")
            return by_stem[stem]

        monkeypatch.setattr(trial, "load", load)

    return install


def findings(interface: Interface = HIP) -> Findings:
    """What examining in this process finds, read back as from a child that ended well."""
    lines: list[str] = []
    examine(interface, Report(lambda record: lines.append(json.dumps(record))))
    output = "\n".join([*lines, '{"done": true}'])
    return read(Outcome(returncode=0, timed_out=False, stdout=output, stderr="", seconds=1.0))


def statuses(found: Findings) -> dict[str, str]:
    return {check.name: check.status for check in found.checks}


@pytest.mark.parametrize("interface", [HIP, CUDA], ids=lambda interface: interface.kind)
def test_working_card_passes_every_step(fake_gpu: SimpleNamespace, install: Any, interface: Interface) -> None:
    install(fake_gpu.runtime(interface), fake_gpu.blas(interface))
    found = findings(interface)
    assert found.no_device is None
    assert {name for name, status in statuses(found).items() if status == "pass"} == {
        f"load lib{interface.runtime}",
        f"load lib{interface.blas}",
        f"{interface.prefix}GetDeviceCount",
        interface.create,
        interface.sgemm,
        interface.destroy,
    }
    assert "fail" not in statuses(found).values()


@pytest.mark.parametrize("answer", [{"count_error": 100}, {"count_error": 35}, {"devices": 0}])
def test_missing_device_is_no_failure_and_keeps_the_versions(
    fake_gpu: SimpleNamespace, install: Any, answer: dict[str, int]
) -> None:
    install(fake_gpu.runtime(version=60443484, **answer), fake_gpu.blas())
    found = findings()
    assert found.no_device
    assert "hipGetDeviceCount" in found.no_device
    assert "fail" not in statuses(found).values()
    assert found.versions["hip runtime"] == "6.4.43484"
    assert found.versions["hip driver"] == "unknown (hipDriverGetVersion returned 101: the words for 101)"
    assert found.versions["libhipblas"] == "libhipblas.so.9"


def test_other_errors_of_the_count_are_a_failure(fake_gpu: SimpleNamespace, install: Any) -> None:
    install(fake_gpu.runtime(count_error=3), fake_gpu.blas())
    found = findings()
    assert found.no_device is None
    assert statuses(found)["hipGetDeviceCount"] == "fail"


def test_handle_that_is_refused_fails_with_the_librarys_message(fake_gpu: SimpleNamespace, install: Any) -> None:
    install(fake_gpu.runtime(), fake_gpu.blas(create_error=3))
    (refused,) = [check for check in findings().checks if check.name == "hipblasCreate"]
    assert (refused.status, refused.detail) == ("fail", "hipblasCreate returned 3: STATUS_3")


@pytest.mark.parametrize("fault", [{"wrong": True}, {"silent": True}])
def test_wrong_product_fails(fake_gpu: SimpleNamespace, install: Any, fault: dict[str, bool]) -> None:
    install(fake_gpu.runtime(), fake_gpu.blas(**fault))
    assert statuses(findings())["hipblasSgemm"] == "fail"


def test_missing_runtime_fails_and_a_missing_companion_does_not(fake_gpu: SimpleNamespace, install: Any) -> None:
    install(fake_gpu.blas())
    found = statuses(findings())
    assert found["load libamdhip64"] == "fail"
    assert found["load libhipblaslt"] == "not-applicable"


def test_runtime_without_its_blas_still_counts_devices(fake_gpu: SimpleNamespace, install: Any) -> None:
    install(fake_gpu.runtime(count_error=100))
    found = findings()
    assert statuses(found)["load libhipblas"] == "fail"
    assert found.no_device


@pytest.mark.parametrize(
    ("interface", "number", "text"),
    [(HIP, 50731921, "5.7.31921"), (HIP, 60443484, "6.4.43484"), (HIP, 70253211, "7.2.53211"), (CUDA, 12040, "12.4")],
)
def test_versions_are_unpacked(interface: Interface, number: int, text: str) -> None:
    assert trial.decode_version(interface, number) == text


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("import os; os.abort()", "ended by SIGABRT"),
        ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
        ("import sys; sys.exit('Tensile host: no devices')", "ended by status 1: Tensile host: no devices"),
        ("import time; time.sleep(60)", "hung"),
    ],
)
def test_library_that_takes_the_process_down_costs_one_check(
    make_probe: Any, monkeypatch: pytest.MonkeyPatch, ending: str, words: str
) -> None:
    begin = 'print(\'{"begin": "hipblasCreate"}\', flush=True)'
    monkeypatch.setattr(trial, "CHILD_MODULE", make_probe(f"{begin}\n{ending}").module)
    (check,) = trial.try_in_child("rocm", 2.0).checks
    assert (check.name, check.status) == ("hipblasCreate", "fail")
    assert words in check.detail


def test_crash_after_the_last_step_counts_too() -> None:
    done = '{"begin": "exit"}\n{"done": true}\n'
    (check,) = read(Outcome(returncode=-11, timed_out=False, stdout=done, stderr="", seconds=1.0)).checks
    assert (check.name, check.status, check.detail) == ("exit", "fail", "the process ended by SIGSEGV")


def test_child_reports_libraries_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[6]))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    found = trial.try_in_child("rocm", 30.0)
    assert "load libamdhip64" in statuses(found)
