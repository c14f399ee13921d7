from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.health import Card
from trainer.diagnostics.probes import registry, runner
from trainer.diagnostics.probes.registry import Probe
from trainer.runtime import memory_limit
from trainer.runtime.child_process import Outcome
from trainer.telemetry.health.watch import HealthWatch

ROOT = Path(__file__).parents[5]
FILLING = """
    import subprocess, sys
    child = "held = []\\nwhile True: held.append(bytearray(b'x') * (1 << 22))"
    subprocess.run([sys.executable, "-c", child])  # a grandchild of the runner, as a rank is
"""
PROBE = Probe(name="fault", module="fault", summary="a fault", timeout_seconds=5.0)
HONEST = """
    import sys
    from trainer.diagnostics.probes import entry
    from trainer.diagnostics.probes.verdict import Device, at_most, conclude

    def measure(request):
        device = Device(kind="cpu", name="a CPU", arch="x86_64")
        return conclude(probe="fault", summary="fine", checks=[at_most("x", 0, 1, "s")], device=device)
"""
RUN = "    sys.exit(entry.main('fault', measure))\n"
EMPTY: dict[str, Any] = {"probe": "fault", "status": "pass", "summary": "", "checks": [], "numbers": [], "device": None}
LINE = json.dumps({"event": "probe"} | EMPTY)

FAULTS = {
    "aborts": ("import os; os.abort()", "crash", "died of SIGABRT"),
    "segfaults": ("import os; os.kill(os.getpid(), 11)", "crash", "died of SIGSEGV"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "crash", "memory ran out"),
    "silent": ("", "fail", "status 0 and no verdict"),
    "silent failure": ("import sys; sys.exit(7)", "fail", "status 7 and no verdict"),
    "no such import": ("import nonexistent_module", "fail", "status 1 and no verdict"),
    "garbage": ("print('all tests passed')", "fail", "no valid verdict"),
    "binary garbage": ("import os; os.write(1, bytes(range(128, 256)))", "fail", "no valid verdict"),
    "truncated": (f"print({LINE[:40]!r}, end='')", "fail", "no valid verdict"),
    "pass without a check": (f"print({LINE!r})", "fail", "do not bear it out"),
    "crash after the verdict": (HONEST + "    entry.main('fault', measure); import os; os.abort()", "crash", "void"),
    "two verdicts": (HONEST + "    sys.stdout.flush(); import os; os.write(1, b'hello\\n')\n" + RUN, "fail", "2 lines"),
    "status contradicts": (HONEST + "    entry.main('fault', measure); sys.exit(3)", "fail", "exit status 3"),
    "another probe's": (HONEST.replace('"fault"', '"other"') + RUN, "fail", "of probe 'other'"),
    "raises": (HONEST + "    measure = lambda _: 1 / 0\n" + RUN, "fail", "ZeroDivisionError"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_each_become_a_verdict(fault: str, make_probe: Any) -> None:
    source, status, phrase = FAULTS[fault]
    verdict = runner.run(make_probe(source), "any")
    assert verdict.status == status
    assert phrase in verdict.summary
    assert verdict.seconds > 0


def test_honest_probe_passes(make_probe: Any) -> None:
    verdict = runner.run(make_probe(HONEST + RUN), "cpu")
    assert (verdict.status, verdict.summary, verdict.stderr_tail) == ("pass", "fine", "")


def test_output_of_libraries_on_stdout_does_not_spoil_the_verdict(make_probe: Any) -> None:
    noisy = "        import os; os.write(1, b'RCCL version 2.20\\n')\n        return conclude"
    verdict = runner.run(make_probe(HONEST.replace("        return conclude", noisy) + RUN), "any")
    assert verdict.status == "pass"


def test_hang_is_a_timeout(make_probe: Any) -> None:
    verdict = runner.run(make_probe("import time; print('almost', flush=True); time.sleep(60)"), "any", 1.0)
    assert verdict.status == "timeout"
    assert "within 1 s" in verdict.summary


COSTS_NO_OTHER = {
    "hangs": ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", "timeout"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "crash"),  # a real segmentation fault, not a signal sent
    "fills": ("held = []\nwhile True: held.append(bytearray(b'x') * (1 << 22))", "crash"),
    "exhausts": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
        "from trainer.diagnostics.probes import entry\n"
        "entry.main('exhausts', lambda _: bytearray(b'x') * (1 << 30)); raise SystemExit(1)",
        "fail",
    ),
}


def test_probe_that_hangs_crashes_or_fills_memory_costs_only_its_own_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sources = {name: source for name, (source, _) in COSTS_NO_OTHER.items()}
    for name, source in {**sources, "honest": textwrap.dedent(HONEST.replace('"fault"', '"honest"') + RUN)}.items():
        (tmp_path / f"probe_{name}.py").write_text(source.replace("main('fault'", "main('honest'"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(memory_limit, "fair_share", lambda: 2 * (256 << 20))  # two at once: 256 MiB for each
    made = [
        Probe(name=name, module=f"probe_{name}", summary="", timeout_seconds=2.0 if name == "hangs" else 60.0)
        for name in (*sources, "honest")
    ]
    monkeypatch.setattr(registry, "PROBES", tuple(made))
    status, (*verdicts, last) = smoke(capfd)
    expected = {name: status for name, (_, status) in COSTS_NO_OTHER.items()}
    assert status == 1
    assert {each["probe"]: each["status"] for each in verdicts} == {**expected, "honest": "pass"}
    assert (last["passed"], last["failures"]) == (1, expected)
    summaries = {each["probe"]: each["summary"] for each in verdicts}
    assert "SIGSEGV" in summaries["crashes"]
    assert "filled this machine's memory" in summaries["fills"]
    assert summaries["exhausts"].startswith("MemoryError")


def test_failure_carries_the_end_of_stderr(make_probe: Any) -> None:
    verdict = runner.run(make_probe("import sys; print('hsa_init failed', file=sys.stderr); sys.exit(1)"), "any")
    assert verdict.stderr_tail == "hsa_init failed"


@pytest.mark.parametrize("expect", ["rocm", "cuda"])
def test_pass_on_the_wrong_device_is_a_failure(make_probe: Any, expect: Any) -> None:
    verdict = runner.run(make_probe(HONEST + RUN), expect)
    assert verdict.status == "fail"
    assert f"ran on cpu where {expect} was expected" in verdict.summary


def test_process_stuck_in_the_driver_is_reported_as_stuck() -> None:
    stuck = Outcome(returncode=None, timed_out=True, stdout="", stderr="", seconds=10.0)
    assert "does not die" in runner.read_verdict(PROBE, stuck, 5.0).summary


def test_probe_that_cannot_be_started_fails(make_probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    verdict = runner.run(make_probe(HONEST + RUN), "any")
    assert verdict.status == "fail"
    assert "could not be started" in verdict.summary


def smoke(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, list[dict[str, Any]]]:
    status = runner.main(argv)
    return status, [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_suite_passes_only_if_every_probe_did(
    make_probe: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    good = make_probe(HONEST + RUN)
    bad = Probe(name="bad", module="nonexistent_module", summary="", timeout_seconds=5.0)
    monkeypatch.setattr(registry, "PROBES", (good, bad))
    status, lines = smoke(capfd)
    assert status == 1
    assert [line["event"] for line in lines] == ["probe", "probe", "smoke"]
    assert lines[-1] | {"seconds": 0} == {
        "event": "smoke",
        "passed": 1,
        "failed": 1,
        "failures": {"bad": "fail"},
        "not_applicable": {},
        "expect": "any",
        "at_once": runner.side_by_side(),
        "seconds": 0,
    }
    assert smoke(capfd, "--probe", "fault", "--probe", "fault")[0] == 0


ABSENT = """
    import sys
    from trainer.diagnostics.probes import entry
    from trainer.diagnostics.probes.verdict import absent

    sys.exit(entry.main("fault", lambda request: absent(probe="fault", reason="No second card.")))
"""


@pytest.mark.parametrize(("expect", "status"), [("any", "not-applicable"), ("cpu", "not-applicable"), ("rocm", "fail")])
def test_absent_subject_fails_where_a_card_is_expected(make_probe: Any, expect: Any, status: str) -> None:
    verdict = runner.run(make_probe(ABSENT), expect)
    assert verdict.status == status
    assert verdict.summary.startswith("No second card.")


def test_subject_that_no_image_promises_may_be_absent(make_probe: Any) -> None:
    probe = dataclasses.replace(make_probe(ABSENT), may_be_absent=True)
    assert runner.run(probe, "rocm").status == "not-applicable"


@pytest.mark.parametrize("expect", ["any", "cpu", "rocm"])
def test_absent_subject_that_the_image_promises_fails(
    make_probe: Any, monkeypatch: pytest.MonkeyPatch, expect: Any
) -> None:
    probe = dataclasses.replace(make_probe(ABSENT), may_be_absent=True)
    monkeypatch.setenv(runner.PROMISES, f"other {probe.name}")
    verdict = runner.run(probe, expect)
    assert verdict.status == "fail"
    assert "This image promises it" in verdict.summary
    monkeypatch.setenv(runner.PROMISES, "other")
    assert runner.run(probe, expect).status == "not-applicable"


def test_probe_that_is_not_applicable_counts_neither_way_and_alone_is_no_success(
    make_probe: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    idle = make_probe(ABSENT)
    monkeypatch.setattr(registry, "PROBES", (idle,))
    status, lines = smoke(capfd)
    assert status == 1
    assert lines[-1]["not_applicable"] == {"fault": "No second card."}
    assert (lines[-1]["passed"], lines[-1]["failures"]) == (0, {})


def test_probe_brings_its_parts_and_one_card_leaves_out_those_of_two() -> None:
    named = [probe.name for probe in runner.select(["two_gpu_step"])]
    assert named[0] == "two_gpu_step"
    assert set(named[1:]) == {f"two_gpu_step_{part}" for part in ("data_parallel", "fsdp2", "pipeline")}
    assert {probe.cards for probe in runner.select(None, cards=1)} == {1}
    assert runner.select(["p2p"], cards=1)[0].name == "p2p"


def test_probes_run_alone_where_a_card_may_be(tmp_path: Path) -> None:
    assert runner.side_by_side(tmp_path) == min(2, len(os.sched_getaffinity(0)))
    (tmp_path / "kfd").touch()
    assert runner.side_by_side(tmp_path) == 1


def test_empty_suite_is_no_success(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(registry, "PROBES", ())
    assert smoke(capfd)[0] == 1


def test_unknown_probe_is_named_with_its_neighbour_and_the_list(capfd: pytest.CaptureFixture[str]) -> None:
    status, (error,) = smoke(capfd, "--probe", "blsa")
    assert status == 2
    assert error["code"] == "RM590"
    assert "did you mean blas?" in error["next"]
    assert "device, blas, convert" in error["next"]


@pytest.mark.parametrize("argv", [["--timeout", "0"], ["--timeout", "soon"], ["--expect", "tpu"], ["--fast"]])
def test_wrong_usage_is_an_error_with_a_code(argv: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    status, (error,) = smoke(capfd, *argv)
    assert (status, error["event"], error["code"]) == (2, "error", "RM500")


def test_list_is_the_registry(capfd: pytest.CaptureFixture[str]) -> None:
    status, lines = smoke(capfd, "--list")
    assert status == 0
    assert [line["probe"] for line in lines] == [probe.name for probe in registry.PROBES]


def test_runner_needs_no_torch() -> None:
    source = "import sys, trainer.diagnostics.probes.runner; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], cwd=ROOT, check=False).returncode == 0


def test_terminated_runner_ends_its_probe(make_probe: Any, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    make_probe(f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    source = (
        "import sys; from trainer.diagnostics.probes import registry, runner\n"
        "registry.PROBES = (registry.Probe(name='fault', module='fault', summary='', timeout_seconds=60),)\n"
        "sys.exit(runner.main([]))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    process = subprocess.Popen([sys.executable, "-c", source], env=environment, stdout=subprocess.DEVNULL)
    while not (note.exists() and note.read_text()):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_probe_that_fills_memory_costs_only_its_own_verdict(make_probe: Any) -> None:
    verdict = runner.run(make_probe(FILLING), "any", share=256 << 20)
    assert verdict.status == "crash"
    assert verdict.summary.startswith("The probe filled this machine's memory and was killed when it held ")
    assert verdict.seconds < 30


HEALTH = {
    "moved": ({"ras/umc_err_count": "ue: 1\nce: 3\n"}, "ras/umc/ue rose from 0 to 1. The suite raises no level"),
    "still": ({}, ""),
    "unknown": (None, "reports no error counter"),
}


@pytest.mark.parametrize("case", HEALTH)
def test_health_of_a_card_is_reported_in_the_watchs_own_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    later, words = HEALTH[case]
    card = Card(tmp_path) if later is None else Card(tmp_path).sound()
    watch = HealthWatch(root=tmp_path, devices=tmp_path / "dev")
    for name, text in (later or {}).items():
        card.write(name, text)
    runner.report_health(watch.report())
    printed = capsys.readouterr()
    assert json.loads(printed.out)["event"] == "health"
    assert words in printed.err
    assert bool(words) == bool(printed.err)
