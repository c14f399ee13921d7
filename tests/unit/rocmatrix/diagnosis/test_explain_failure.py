"""After a failure a few lines say why, as far as its words tell; verdict, status and error stay what they were."""

import sys
from pathlib import Path

import pytest

from rocmatrix.cli.commands import build as build_command
from rocmatrix.cli.commands import jobs
from rocmatrix.cli.commands.jobs import Smoke
from rocmatrix.cli.options.common import Kept
from rocmatrix.diagnosis import explain_failure, signature
from rocmatrix.evidence import recorder
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build, render
from rocmatrix.jobs import runner
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import PROGRAMS
from rocmatrix.matrix.resolver.resolve import Choice, Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import sysfs
from tests.fixtures.cells import CPU, GFX906

FAULT = "RuntimeError: HIP error: invalid device function"
INVALID_ISA = "Queue aborting with error : HSA_STATUS_ERROR_INVALID_ISA: code: 0x100f"
REPORTED = "hip-invalid-device-function: "


def job_request(program):
    return JobRequest(program=PROGRAMS[program], request=Request(), where="native", options={})


@pytest.fixture
def job(monkeypatch, tmp_path):
    """Return a function that lets a job be a few lines of Python, on a machine as told, with a log of its own."""
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))  # others' lost runs are reported

    def end(code, *, cell=CPU, host=sysfs.no_driver, log=None):
        place = recorder.Place(cell=cell, hardware=read_hardware(host(tmp_path / "host")))
        argv = [sys.executable, "-c", code]
        monkeypatch.setattr(
            jobs, "run_and_record", lambda _: (runner.attached(argv, show=lambda _: None, log=log), place)
        )

    return end


@pytest.mark.parametrize("status", [1, 7])
def test_failed_training_is_explained_and_keeps_its_status(job, capfd, status):
    job(f"import sys; sys.stderr.write({FAULT!r}); sys.exit({status})")
    with pytest.raises(SystemExit) as ended:
        jobs.train(job_request("train"), Kept())
    assert ended.value.code == status
    stderr = capfd.readouterr().err
    assert REPORTED in stderr
    assert "this changes no verdict" in stderr
    assert stderr.count("\n") <= explain_failure.LINES_SHOWN + 4  # one above it, and three of the error


def test_training_that_passed_is_not_explained_whatever_its_log(job, capfd):
    job(f"import sys; sys.stderr.write({FAULT!r})")
    jobs.train(job_request("train"), Kept())
    assert "diagnosis" not in capfd.readouterr().err


def test_failed_probe_is_explained_from_its_own_output_and_stays_rm208(job, capfd):
    tail = f'{{"event": "probe", "probe": "blas", "status": "fail", "stderr_tail": "{FAULT}"}}'
    job(f"print({tail!r}); raise SystemExit(1)")
    with pytest.raises(SystemExit) as ended:
        jobs.smoke(job_request("smoke"), Smoke())
    assert ended.value.code == 2
    stderr = capfd.readouterr().err
    assert REPORTED in stderr
    assert "RM208" in stderr


@pytest.mark.parametrize("kept", [True, False])
def test_passed_probe_adds_no_evidence_to_a_diagnosis(job, capfd, tmp_path, kept):
    passed = f'{{"event": "probe", "probe": "blas", "status": "pass", "summary": "{FAULT}"}}'
    failed = '{"event": "probe", "probe": "amp", "status": "fail", "summary": "wrong by 3"}'
    log = tmp_path / "smoke.log" if kept else None
    job(f"print({passed!r}); print({failed!r}); raise SystemExit(1)", log=log)
    with pytest.raises(SystemExit):
        jobs.smoke(job_request("smoke"), Smoke())
    assert "no known failure in its words" in capfd.readouterr().err


def test_failed_training_names_its_log_and_the_cells_rule(job, capfd, tmp_path):
    log = tmp_path / "train.log"
    early = "import sys; sys.stderr.write('" + INVALID_ISA + "\\n' + 'x\\n' * 300_000); sys.exit(1)"
    job(early, cell=GFX906, host=sysfs.two_rx_7900_xt, log=log)
    with pytest.raises(SystemExit):
        jobs.train(job_request("train"), Kept())
    stderr = capfd.readouterr().err.replace("x\n", "")
    assert f"log: {log}" in stderr
    assert f"diagnosis for {GFX906.name} on gfx1100, gfx1100, Linux" in stderr
    assert "seen:   line 1: " in stderr
    assert "rule:   gfx906-override-to-gfx1030" in stderr
    assert "gfx1103-override-to-gfx1100" not in stderr
    assert log.read_text().startswith(INVALID_ISA)


def test_failed_probe_with_passing_checks_is_read(job, capfd, tmp_path):
    checks = f'"checks": [{{"status": "pass"}}], "stderr_tail": "{FAULT}"'
    failed = f'{{"event": "probe", "probe": "blas", "status": "fail", {checks}}}'
    job(f"print({failed!r}); raise SystemExit(1)", log=tmp_path / "smoke.log")
    with pytest.raises(SystemExit):
        jobs.smoke(job_request("smoke"), Smoke())
    stderr = capfd.readouterr().err
    assert REPORTED in stderr
    assert f"where: {tmp_path / 'smoke.log'}" in stderr


def test_failed_build_is_explained_from_its_log_and_raises_what_it_raised(monkeypatch, capfd, tmp_path):
    def failing(cell: object, **_: object) -> None:
        log = build.log_file(CPU, tmp_path)
        log.parent.mkdir(parents=True)
        log.write_text("#9 1.2 OSError: [Errno 28] No space left on device\n")
        raise RocmatrixError("RM202", what="docker buildx ended with status 1", where=str(log))

    monkeypatch.setattr(build_command, "ROOT", tmp_path)
    monkeypatch.setattr(build, "build", failing)
    monkeypatch.setattr(render, "check_cell", lambda *_: None)
    choice = Choice(cell=CPU, why="a test")
    with pytest.raises(RocmatrixError, match="RM202"):
        build_command.built_image(choice, base=None, wheelhouse=None, dry_run=False)
    assert "no-space-left-on-device: " in capfd.readouterr().err


def test_another_error_of_a_build_is_not_explained(capfd, tmp_path):
    with pytest.raises(RocmatrixError, match="RM201"), explain_failure.explained(tmp_path / "none.log", cell=CPU):
        raise RocmatrixError("RM201", what="no engine")
    assert capfd.readouterr().err == ""


def test_defect_of_the_diagnosis_is_one_line(monkeypatch, capfd):
    def broken(_: Path) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(signature, "load", broken)
    explain_failure.explain(FAULT.encode())
    assert capfd.readouterr().err == "diagnosis failed and changes nothing (ValueError: a defect)\n"


def test_log_that_is_missing_is_one_line(capfd, tmp_path):
    explain_failure.explain(tmp_path / "none.log", cell=CPU)
    assert capfd.readouterr().err.startswith("diagnosis failed and changes nothing (RocmatrixError: RM610")
