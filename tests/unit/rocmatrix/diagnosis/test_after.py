"""After a failure a few lines say why, as far as its words tell; verdict, status and error stay what they were."""

import sys
from pathlib import Path

import pytest

from rocmatrix import build, launch, render
from rocmatrix.commands import jobs
from rocmatrix.diagnosis import after, signature
from rocmatrix.errors import RocmatrixError
from rocmatrix.job import Wanted
from rocmatrix.resolve import Choice, Request
from tests.fixtures.cells import CPU

FAULT = "RuntimeError: HIP error: invalid device function"
SAID = "hip-invalid-device-function: "


def wanted(program):
    return Wanted(program=program, request=Request(), where="native", options={})


def job(monkeypatch, code):
    monkeypatch.setattr(jobs, "run_job", lambda _: launch.run([sys.executable, "-c", code], show=lambda _: None))


@pytest.mark.parametrize("status", [1, 7])
def test_a_failed_training_is_explained_and_keeps_its_status(monkeypatch, capfd, status):
    job(monkeypatch, f"import sys; sys.stderr.write({FAULT!r}); sys.exit({status})")
    with pytest.raises(SystemExit) as ended:
        jobs.train(wanted("train"))
    assert ended.value.code == status
    told = capfd.readouterr().err
    assert SAID in told
    assert "this changes no verdict" in told
    assert told.count("\n") <= after.LINES_SAID + 3


def test_a_training_that_ends_well_is_not_explained_whatever_it_says(monkeypatch, capfd):
    job(monkeypatch, f"import sys; sys.stderr.write({FAULT!r})")
    jobs.train(wanted("train"))
    assert "diagnosis" not in capfd.readouterr().err


def test_a_failed_probe_is_explained_from_its_own_words_and_stays_rm208(monkeypatch, capfd):
    tail = f'{{"event": "probe", "probe": "blas", "status": "fail", "stderr_tail": "{FAULT}"}}'
    job(monkeypatch, f"print({tail!r}); raise SystemExit(1)")
    with pytest.raises(SystemExit) as ended:
        jobs.smoke(wanted("smoke"))
    assert ended.value.code == 2
    told = capfd.readouterr().err
    assert SAID in told
    assert "RM208" in told


def test_a_probe_that_passed_is_no_evidence(monkeypatch, capfd):
    passed = f'{{"event": "probe", "probe": "blas", "status": "pass", "summary": "{FAULT}"}}'
    failed = '{"event": "probe", "probe": "amp", "status": "fail", "summary": "wrong by 3"}'
    job(monkeypatch, f"print({passed!r}); print({failed!r}); raise SystemExit(1)")
    with pytest.raises(SystemExit):
        jobs.smoke(wanted("smoke"))
    assert "no known failure in its words" in capfd.readouterr().err


def test_a_failed_build_is_explained_from_its_log_and_raises_what_it_raised(monkeypatch, capfd, tmp_path):
    def failing(cell: object, **_: object) -> None:
        log = build.log_file(CPU, tmp_path)
        log.parent.mkdir(parents=True)
        log.write_text("#9 1.2 OSError: [Errno 28] No space left on device\n")
        raise RocmatrixError("RM202", what="docker buildx ended with status 1", where=str(log))

    monkeypatch.setattr(jobs, "ROOT", tmp_path)
    monkeypatch.setattr(build, "build", failing)
    monkeypatch.setattr(render, "check_cell", lambda *_: None)
    choice = Choice(cell=CPU, why="a test")
    with pytest.raises(RocmatrixError, match="RM202"):
        jobs.build_image(choice, base=None, wheelhouse=None, dry_run=False)
    assert "no-space-left-on-device: " in capfd.readouterr().err


def test_another_error_of_a_build_is_not_explained(capfd, tmp_path):
    with pytest.raises(RocmatrixError, match="RM201"), after.explained(tmp_path / "none.log", cell=CPU):
        raise RocmatrixError("RM201", what="no engine")
    assert capfd.readouterr().err == ""


def test_a_defect_of_the_diagnosis_is_one_line(monkeypatch, capfd):
    def broken(_: Path) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(signature, "load", broken)
    after.explain(FAULT.encode())
    assert capfd.readouterr().err == "diagnosis: it failed itself and changes nothing (ValueError: a defect)\n"


def test_a_log_that_is_missing_is_one_line(capfd, tmp_path):
    after.explain(tmp_path / "none.log", cell=CPU)
    assert capfd.readouterr().err.startswith("diagnosis: it failed itself and changes nothing (RocmatrixError: RM610")
