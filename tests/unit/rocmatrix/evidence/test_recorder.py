"""Every run leaves a record, and no store can change how a run ends."""

import contextlib
import dataclasses
import errno
import json
import os
import signal

import pytest
import requests

from rocmatrix.cli.commands import build as build_command
from rocmatrix.cli.commands import common, evidence, jobs
from rocmatrix.cli.commands.build import Build
from rocmatrix.cli.commands.evidence import Evidence
from rocmatrix.cli.commands.jobs import Smoke
from rocmatrix.containers import engine
from rocmatrix.evidence import from_events, import_export, recorder, store
from rocmatrix.evidence.level import why_not
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build
from rocmatrix.jobs import job, runner
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import SMOKE
from rocmatrix.jobs.runner import Finished, Job, Trouble
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.fixtures.evidence import record

IMAGE = engine.Image(id="sha256:" + "9" * 64, labels={}, size=1000)
BUILT = build.Built(tag="rocmatrix:t", inputs="8" * 64, argv=(), image=IMAGE, rebuilt=True, seconds=2.0)
VERDICT = {"event": "probe", "probe": "blas", "status": "pass", "device": {"kind": "cpu", "name": "a", "arch": "b"}}


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setattr(common, "known_matrix", lambda: cells.MATRIX)
    monkeypatch.setattr(evidence, "known_matrix", lambda: cells.MATRIX)
    monkeypatch.setattr(store, "_reported", set())
    return path


@pytest.fixture
def smoking(path, monkeypatch, tmp_path):
    """Return a function that runs the smoke task over a SIMULATED job that ends as told."""
    prepared = Job(argv=[], environment=None, why="simulated")
    host = read_hardware(sysfs.no_driver(tmp_path / "host"))

    def smoke(*events, status=0, requested_probes=(), trouble=None, run=None, **options):
        place = recorder.Place(cell=cells.CPU, hardware=host, requested_probes=requested_probes)
        done = Finished(status=status, events=events, trouble=trouble)
        monkeypatch.setattr(jobs, "prepared_job", lambda job_request: (prepared, place))
        monkeypatch.setattr(job, "run", run or (lambda *_, **__: done))
        job_request = JobRequest(program=SMOKE, request=Request(), where="native", options=options)
        jobs.smoke(job_request, Smoke())

    return smoke


def test_smoke_is_recorded_before_its_outcome_is_reported(smoking, path):
    smoking(VERDICT)
    with pytest.raises(SystemExit):
        smoking({**VERDICT, "status": "fail"}, status=1, probe=["blas"])
    assert [(r.kind, r.passed, r.whole, r.where) for r in store.read(path)] == [
        ("smoke", True, True, "native"),
        ("smoke", False, False, "native"),
    ]


@pytest.mark.parametrize("status", ["pass", "fail"])
def test_store_that_cannot_be_written_changes_no_outcome(smoking, path, status, capsys):
    path.mkdir()
    failed = status == "fail"
    try:
        smoking({**VERDICT, "status": status}, status=int(failed))
        assert not failed
    except SystemExit as ended:
        assert failed
        assert ended.code == 2
    assert ("RM208" in (stderr := capsys.readouterr().err)) == failed
    assert stderr.count("RM620") == 1


@pytest.mark.parametrize(
    ("status", "sealed", "kept"), [("pass", True, True), ("pass", False, False), ("fail", False, True)]
)
def test_pass_in_a_derived_image_does_not_count_as_the_cells_own(smoking, path, status, sealed, kept):
    inputs, failed = "5" * 64, status == "fail"
    container = runner.Container(
        id="c" * 64, image="sha256:" + "9" * 64, labels={"org.rocmatrix.inputs": inputs}, sealed=sealed
    )
    done = Finished(status=int(failed), events=({**VERDICT, "status": status},), container=container)
    with contextlib.suppress(SystemExit):
        smoking(run=lambda *_, **__: done)
    (made,) = store.read(path)
    assert (made.passed, made.inputs) == (not failed, inputs if kept else None)


GARBAGE = [
    {**VERDICT, "numbers": [{"name": "x", "value": 1.0, "unit": "y" * 5000}, 7, None]},
    {**VERDICT, "device": "a card", "versions": ["torch"], "seconds": "long"},
    {**VERDICT, "summary": "\ud800", "status": {"of": "all"}},
    {**VERDICT, "numbers": [{"name": None, "value": 10**400, "unit": 3}], "probe": ["blas"]},
]


@pytest.mark.parametrize("event", GARBAGE, ids=range(len(GARBAGE)))
def test_garbled_output_fails_and_is_on_record(smoking, path, event):
    with pytest.raises(SystemExit):
        smoking(event, status=1)
    (made,) = store.read(path)
    assert not made.passed


def test_output_that_gives_no_record_fails_the_command(smoking, path, monkeypatch):
    whole, requested_probes = from_events.numbers_of, ("blas", "conv")

    def broken(reported):
        if reported:
            raise KeyError("simulated")
        return whole(reported)

    monkeypatch.setattr(from_events, "numbers_of", broken)
    with pytest.raises(SystemExit):
        smoking(VERDICT, status=1, requested_probes=requested_probes)
    (made,) = store.read(path)
    assert {v.probe: v.status for v in made.verdicts} == dict.fromkeys(requested_probes, from_events.NO_VERDICT)


@pytest.mark.parametrize("ended", [137, 1, 0, 139])
def test_suite_that_died_before_a_verdict_has_failed_every_probe(smoking, path, ended):
    with pytest.raises(SystemExit):
        smoking(status=ended, requested_probes=("blas", "conv"))
    (made,) = store.read(path)
    assert [(v.probe, v.status) for v in made.verdicts] == [("blas", "no verdict"), ("conv", "no verdict")]
    assert (made.passed, made.whole, made.trouble) == (False, True, None)


@pytest.mark.parametrize(
    ("seen", "excused"), [((VERDICT,), True), ((), True), (({**VERDICT, "status": "fail"},), False)]
)
def test_trouble_of_the_host_is_set_aside_unless_a_probe_had_failed(smoking, path, seen, excused):
    trouble = Trouble(stage="engine", detail="the connection broke off")
    with pytest.raises(SystemExit):
        smoking(*seen, status=125, requested_probes=("blas", "conv"), trouble=trouble)
    (made,) = store.read(path)
    assert (made.passed, made.whole, made.trouble is not None) == (False, False, excused)
    assert from_events.NO_VERDICT not in {v.status for v in made.verdicts}


def test_signal_of_a_user_is_recorded_and_ends_the_program(smoking, path, monkeypatch):
    def stopped(*_, **__):
        raise runner.Interrupted(runner.stopped_by_signal())

    with pytest.raises(SystemExit) as ended:
        smoking(run=stopped)
    assert ended.value.code == 130
    (made,) = store.read(path)
    assert (made.passed, made.trouble.stage) == (False, "signal")


def test_program_that_was_killed_leaves_a_failure(smoking, path, monkeypatch):
    """As a card does that takes the machine down: the note of the start is all that is left."""
    child = os.fork()
    if child == 0:
        smoking(run=lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL), requested_probes=("blas",))
    os.waitpid(child, 0)
    assert store.read(path) == []
    recorder.settle()
    (made,) = store.read(path)
    assert [(v.probe, v.status) for v in made.verdicts] == [("blas", "no verdict")]
    assert (made.passed, made.trouble) == (False, None)
    recorder.settle()
    assert len(store.read(path)) == 1


def test_running_run_is_not_lost_and_a_returned_one_leaves_no_note(smoking, path):
    during = []

    def run(*_, **__):
        recorder.settle()
        during.extend(store.read(path))
        return Finished(status=0, events=(VERDICT,))

    smoking(run=run)
    recorder.settle()
    assert during == []
    assert [r.passed for r in store.read(path)] == [True]


def test_lost_run_stands_before_the_next_one(smoking, path):
    child = os.fork()
    if child == 0:
        smoking(run=lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    os.waitpid(child, 0)
    smoking(VERDICT)
    assert [r.passed for r in store.read(path)] == [False, True]


def test_mistyped_flag_leaves_nothing(smoking, path):
    with pytest.raises(SystemExit):
        smoking({"event": "error", "code": "RM590"}, status=2)
    recorder.settle()
    assert store.read(path) == []


@pytest.mark.parametrize("status", [0, 2])
def test_error_of_usage_after_a_verdict_excuses_nothing(smoking, path, status):
    with pytest.raises(SystemExit):
        smoking({**VERDICT, "status": "fail"}, {"event": "error", "code": "RM590"}, status=status)
    assert [r.passed for r in store.read(path)] == [False]


def test_build_is_recorded_and_one_that_did_nothing_is_not_again(path):
    recorder.record_build(cells.CPU, BUILT)
    idle = build.Built(tag="t", inputs=BUILT.inputs, argv=(), image=IMAGE)
    recorder.record_build(cells.CPU, idle)
    recorder.record_build(cells.CPU, build.Built(tag="t", inputs="7" * 64, argv=()))  # a dry run
    (made,) = store.read(path)
    assert (made.kind, made.image, made.inputs, made.passed) == ("build", IMAGE.id, BUILT.inputs, True)
    assert [(n.name, n.value, n.unit) for n in made.numbers] == [("size", 1000.0, "B")]


@pytest.mark.parametrize("stage", [None, "registry"])
def test_failed_build_is_recorded_with_what_it_was_planned_of(path, monkeypatch, stage):
    """The base was remembered: no flag names it."""
    labels = {"org.rocmatrix.base": "mirror/debian"}
    planned = build.Built(tag="t", inputs="6" * 64, argv=(), labels=labels)
    trouble = Trouble(stage=stage, detail="simulated") if stage else None

    def fail(*_, **__):
        error = RocmatrixError("RM202", what="simulated")
        raise build.BuildFailedError(error, planned=planned, trouble=trouble)

    monkeypatch.setattr(build, "build", fail)
    with pytest.raises(SystemExit):
        build_command.build(Build(cell=cells.CPU.name))
    (made,) = store.read(path)
    assert (made.kind, made.passed, made.marks, made.inputs) == ("build", False, ("other-base",), planned.inputs)
    assert (made.trouble.stage if made.trouble else None) == stage


PROVEN = engine.Image(id="sha256:" + "9" * 64, labels={"org.rocmatrix.inputs": "5" * 64}, size=1)


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (RocmatrixError("RM201", what="gone"), "engine"),
        (RocmatrixError("RM221", what="the export broke off"), "engine"),
        (requests.exceptions.ReadTimeout("20 s"), "engine"),
        (OSError(errno.ENOSPC, "full"), "disk"),
        (KeyboardInterrupt(), "signal"),
        (ValueError("no ELF file, says the parser of a file in the image"), None),
        (FileNotFoundError(errno.ENOENT, "no such file"), None),
        (RocmatrixError("RM210", what="of the image"), None),
    ],
    ids=str,
)
def test_proof_that_ended_before_its_verdict_is_recorded_by_what_ended_it(path, error, stage):
    with pytest.raises(type(error)), recorder.proving(cells.CPU, PROVEN):
        raise error
    (made,) = store.read(path)
    assert (made.kind, made.passed, made.inputs) == ("prove", False, "5" * 64)
    assert (made.trouble.stage if made.trouble else None) == stage
    assert bool(why_not(made, cells.CPU)) == bool(stage)


def show(**given):
    evidence.evidence(Evidence(**given))


def test_task_exports_imports_once_and_shows_levels(path, tmp_path, capsys):
    store.add(path, [record("build"), record("prove", 1)])
    show(export=str(tmp_path / "sent.json"))
    other = str(tmp_path / "other.db")
    for new in (2, 0):
        show(take=str(tmp_path / "sent.json"), evidence=other)
        assert f"2 records, {new} of them new" in capsys.readouterr().err
    show(cell="rocm6.3-torch2.7.1-gfx1100", json=True, evidence=other)
    document = json.loads(capsys.readouterr().out)
    (cell_status,) = document["levels"]
    assert document["standings"] == document["levels"]  # the earlier name stays readable
    assert (cell_status["level"], cell_status["current"]) == ("proven", False)
    assert len(document["records"]) == 2


def test_refused_file_adds_nothing(path, tmp_path, capsys):
    text = import_export.written([record("build"), record("prove", 1)])
    (tmp_path / "sent.json").write_text(text.replace('"kind": "prove"', '"kind": "smoke"'))
    with pytest.raises(SystemExit):
        show(take=str(tmp_path / "sent.json"))
    stderr = capsys.readouterr().err
    assert "RM622" in stderr
    assert "line 3" in stderr
    assert not path.exists()


def test_older_image_that_is_up_to_date_again_becomes_the_newest_build_on_record(path):
    recorder.record_build(cells.CPU, BUILT)
    newer = dataclasses.replace(BUILT, inputs="7" * 64, image=dataclasses.replace(IMAGE, id="sha256:" + "7" * 64))
    recorder.record_build(cells.CPU, newer)
    again = dataclasses.replace(BUILT, rebuilt=False)
    for _ in range(2):  # the second time it is known
        recorder.record_build(cells.CPU, again)
    assert [r.inputs[0] for r in store.read(path)] == ["8", "7", "8"]
