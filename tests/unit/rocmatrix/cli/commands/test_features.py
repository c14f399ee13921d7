"""`features`: a list needs nothing but Python; computed ones need data and a file, and end with the job's status."""

import subprocess
import sys

import pytest

from rocmatrix.cli.commands import features
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import FEATURES
from rocmatrix.jobs.runner import Finished
from rocmatrix.matrix.resolver.resolve import Request

ARGS = features.Features()


def job_request(**options):
    return JobRequest(program=FEATURES, request=Request(), where="native", options=options)


@pytest.fixture
def started(monkeypatch):
    """Return what was started instead of starting it; its status is 0."""
    seen = []
    monkeypatch.setattr(features, "run_job", lambda request: seen.append(request) or Finished(status=0, events=()))
    return seen


@pytest.mark.parametrize(
    ("options", "missing"),
    [({}, "--data and --out"), ({"data": "b.csv"}, "needs --out,"), ({"out": "f.arrow"}, "needs --data,")],
)
def test_missing_options_are_named_before_anything_starts(started, capsys, options, missing):
    with pytest.raises(SystemExit) as ended:
        features.features(job_request(**options), ARGS)
    assert (ended.value.code, missing in capsys.readouterr().err) == (2, True)
    assert started == []


def test_features_of_data_are_a_job(started):
    request = job_request(data="b.csv", out="f.arrow", list="no")
    features.features(request, ARGS)
    assert started == [request]


def test_job_that_fails_ends_the_command_with_its_status(monkeypatch):
    monkeypatch.setattr(features, "run_job", lambda _: Finished(status=2, events=()))
    with pytest.raises(SystemExit) as ended:
        features.features(job_request(data="b.csv", out="f.arrow"), ARGS)
    assert ended.value.code == 2


def test_job_that_was_only_shown_is_no_failure(monkeypatch):
    monkeypatch.setattr(features, "run_job", lambda _: None)
    features.features(job_request(data="b.csv", out="f.arrow"), ARGS)


def test_list_runs_this_python_and_no_job(started, monkeypatch):
    run = []
    done = subprocess.CompletedProcess([], 3)
    monkeypatch.setattr(features.subprocess, "run", lambda argv, **_: run.append(argv) or done)
    with pytest.raises(SystemExit) as ended:
        features.features(job_request(list=True), ARGS)
    assert (ended.value.code, started) == (3, [])
    assert (run[0][0], run[0][-2:]) == (sys.executable, ["features", "--list"])
