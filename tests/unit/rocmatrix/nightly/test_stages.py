"""A night's smoke that fails is explained as one by hand is, and names its log."""

from rocmatrix.host.hardware import survey
from rocmatrix.jobs import job
from rocmatrix.jobs import runner as launch
from rocmatrix.jobs.runner import Finished, Job
from rocmatrix.nightly.stages import OnEngine
from tests.fixtures import sysfs
from tests.fixtures.cells import CPU, MATRIX


def test_failed_smoke_of_a_night_names_its_log_and_its_likely_cause(tmp_path, monkeypatch, capsys):
    log = tmp_path / "smoke.log"
    log.write_text("RuntimeError: HIP error: invalid device function\n")
    failed = {"event": "probe", "probe": "blas", "status": "fail"}
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    monkeypatch.setattr(job, "in_container", lambda *_, **__: Job(argv=[], environment=None, why="simulated"))
    monkeypatch.setattr(launch, "run", lambda *_, **__: Finished(status=1, events=(failed,), log=log))
    stages = OnEngine(
        matrix=MATRIX, root=job.ROOT, night="n", hardware=survey(sysfs.no_driver(tmp_path / "host")), needed=(),
        evidence=tmp_path / "evidence.db", budget=0, today="2026-11-22",
    )  # fmt: skip
    assert stages.smoke(CPU).state == "failed"
    told = capsys.readouterr().err
    assert f"log: {log}" in told
    assert "hip-invalid-device-function" in told
