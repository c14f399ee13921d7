"""What tests of rocmatrix/jobs share."""

import pytest

from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import cluster as submit
from rocmatrix.jobs import job, programs
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import TRAIN
from rocmatrix.jobs.runner import Job
from rocmatrix.matrix.resolver.resolve import Request
from tests.fixtures import cells, sysfs


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """Return a function that makes the job of a machine; the native one is made without an environment."""

    def native_job(job_request, **_):
        argv = ["/opt/python", "-P", "-m", "trainer", "train", *programs.flags(job_request.options)]
        return Job(argv=argv, environment={"PYTHONPATH": "/checkout", "PYTHONSAFEPATH": "1", "A": "b"}, why="w")

    monkeypatch.setattr(job, "native_job", native_job)

    def prepare(to, cell=cells.CPU, machine=sysfs.no_driver, **options):
        options = {"output": str(tmp_path / "runs"), **options}
        job_request = JobRequest(program=TRAIN, request=Request(), where="", options=options)
        hardware = read_hardware(machine(tmp_path / "machine"))
        return submit.prepare(job_request, to, matrix=cells.MATRIX, cell=cell, hardware=hardware)

    return prepare
