"""Every run leaves a record, and no store can change how a run ends."""

import json
from pathlib import Path

import pytest

from rocmatrix.cli.commands import common, evidence, jobs
from rocmatrix.containers import engine
from rocmatrix.evidence import exchange, store
from rocmatrix.evidence import recorder as keeping
from rocmatrix.host.hardware import survey
from rocmatrix.images import build
from rocmatrix.jobs import runner as launch
from rocmatrix.jobs.job import Wanted
from rocmatrix.jobs.runner import Finished, Job
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
    monkeypatch.setattr(store, "_told", set())
    return path


@pytest.fixture
def smoking(path, monkeypatch, tmp_path):
    """Return a function that runs the smoke task over a SIMULATED job that ends as told."""
    place = keeping.Place(cell=cells.CPU, hardware=survey(sysfs.no_driver(tmp_path / "host")))
    prepared = Job(argv=[], environment=None, why="simulated")
    monkeypatch.setattr(jobs, "prepared_job", lambda wanted: (prepared, place))

    def smoke(*events, status=0, **options):
        monkeypatch.setattr(launch, "run", lambda *_, **__: Finished(status=status, events=events))
        jobs.smoke(Wanted(program="smoke", request=Request(), where="native", options=options))

    return smoke


def test_a_smoke_is_recorded_before_its_outcome_is_told(smoking, path):
    smoking(VERDICT)
    with pytest.raises(SystemExit):
        smoking({**VERDICT, "status": "fail"}, status=1, probe=["blas"])
    assert [(r.kind, r.passed, r.whole, r.where) for r in store.read(path)] == [
        ("smoke", True, True, "native"),
        ("smoke", False, False, "native"),
    ]


@pytest.mark.parametrize("status", ["pass", "fail"])
def test_a_store_that_cannot_be_written_changes_no_outcome(smoking, path, status, capsys):
    path.mkdir()
    failed = status == "fail"
    try:
        smoking({**VERDICT, "status": status}, status=int(failed))
        assert not failed
    except SystemExit as ended:
        assert failed
        assert ended.code == 2
    assert ("RM208" in (said := capsys.readouterr().err)) == failed
    assert said.count("RM620") == 1


def test_a_record_that_cannot_be_made_changes_no_outcome(smoking, path, capsys):
    smoking({**VERDICT, "numbers": [{"name": "x", "value": 1.0, "unit": "y" * 5000}]})
    assert capsys.readouterr().err.count("RM620") == 1
    assert not path.exists()


def test_a_build_is_recorded_and_one_that_did_nothing_is_not_again(path):
    keeping.keep_build(cells.CPU, BUILT, base=None, forced=False)
    idle = build.Built(tag="t", inputs=BUILT.inputs, argv=(), image=IMAGE)
    keeping.keep_build(cells.CPU, idle, base=None, forced=False)
    keeping.keep_build(cells.CPU, build.Built(tag="t", inputs="7" * 64, argv=()), base=None, forced=False)  # a dry run
    (made,) = store.read(path)
    assert (made.kind, made.image, made.inputs, made.passed) == ("build", IMAGE.id, BUILT.inputs, True)
    assert [(n.name, n.value, n.unit) for n in made.numbers] == [("size", 1000.0, "B")]


def test_a_failed_build_is_recorded_with_its_inputs(path, monkeypatch):
    def fail(*_, **__):
        raise RocmatrixError("RM202", what="simulated")

    monkeypatch.setattr(build, "build", fail)
    with pytest.raises(SystemExit):
        jobs.build(
            request=Request(cell=cells.CPU.name), base="mirror/debian", wheelhouse=None, dry_run=False,
            allow_unlocked=False,
        )  # fmt: skip
    (made,) = store.read(path)
    assert (made.kind, made.passed, made.marks) == ("build", False, ("other-base",))
    assert made.inputs == build.input_hash(cells.CPU, Path(keeping.ROOT), base="mirror/debian")


def show(**given):
    evidence.evidence(**{"cell": "", "as_json": False, "export": "", "take": "", "file": ""} | given)


def test_the_task_exports_imports_once_and_shows_levels(path, tmp_path, capsys):
    store.add(path, [record("build"), record("prove", 1)])
    show(export=str(tmp_path / "sent.json"))
    other = str(tmp_path / "other.db")
    for new in (2, 0):
        show(take=str(tmp_path / "sent.json"), file=other)
        assert f"2 records, {new} of them new" in capsys.readouterr().err
    show(cell="rocm6.3-torch2.7.1-gfx1100", as_json=True, file=other)
    told = json.loads(capsys.readouterr().out)
    (standing,) = told["standings"]
    assert (standing["level"], standing["current"]) == ("proven", False)
    assert len(told["records"]) == 2


def test_a_refused_file_adds_nothing(path, tmp_path, capsys):
    text = exchange.written([record("build"), record("prove", 1)])
    (tmp_path / "sent.json").write_text(text.replace('"kind": "prove"', '"kind": "smoke"'))
    with pytest.raises(SystemExit):
        show(take=str(tmp_path / "sent.json"))
    said = capsys.readouterr().err
    assert "RM622" in said
    assert "line 3" in said
    assert not path.exists()
