"""A night's smoke that fails is explained as one by hand is, and names its log."""

from rocmatrix.evidence import store
from rocmatrix.evidence.record import Trouble
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import job
from rocmatrix.jobs.runner import Finished, Job
from rocmatrix.nightly.stages import OnEngine
from tests.fixtures import sysfs
from tests.fixtures.cells import CPU, MATRIX
from tests.fixtures.evidence import IMAGE, INPUTS, OTHER_INPUTS, record


def test_failed_smoke_of_a_night_names_its_log_and_its_likely_cause(tmp_path, monkeypatch, capsys):
    log = tmp_path / "smoke.log"
    log.write_text("RuntimeError: HIP error: invalid device function\n")
    failed = {"event": "probe", "probe": "blas", "status": "fail"}
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    monkeypatch.setattr(job, "container_job", lambda *_, **__: Job(argv=[], environment=None, why="simulated"))
    monkeypatch.setattr(job, "run", lambda *_, **__: Finished(status=1, events=(failed,), log=log))
    stages = OnEngine(
        matrix=MATRIX, root=job.ROOT, night="n", hardware=read_hardware(sysfs.no_driver(tmp_path / "host")), needed=(),
        evidence=tmp_path / "evidence.db", budget=0, today="2026-11-22",
    )  # fmt: skip
    assert stages.smoke(CPU).state == "failed"
    stderr = capsys.readouterr().err
    assert f"log: {log}" in stderr
    assert "hip-invalid-device-function" in stderr


class Night(OnEngine):
    """Stages whose inputs are known without a checkout."""

    def _inputs(self, cell):
        return INPUTS


def test_night_takes_as_it_is_only_what_a_build_on_record_made_and_no_proof_refused(tmp_path):
    path = tmp_path / "evidence.db"
    night = Night(
        matrix=MATRIX, root=job.ROOT, night="n", hardware=read_hardware(sysfs.no_driver(tmp_path / "host")), needed=(),
        evidence=path, budget=0, today="2026-11-22",
    )  # fmt: skip

    def sound(*records):
        path.unlink(missing_ok=True)
        store.add(path, records)
        return night._sound(CPU)

    def of(kind, hours, **fields):
        return record(kind, hours, cell=CPU.name, **fields)

    assert sound(of("smoke", 0)) == set()  # what ran is not what was built
    assert sound(of("build", 0)) == {IMAGE}
    assert sound(of("build", 0, inputs=OTHER_INPUTS)) == set()
    assert sound(of("build", 0), of("prove", 1, passed=False)) == set()
    assert sound(of("build", 0), of("prove", 1, passed=False), of("prove", 2)) == {IMAGE}
    lost = Trouble(stage="engine", words="gone")
    assert sound(of("build", 0), of("prove", 1, passed=False, trouble=lost)) == {IMAGE}
