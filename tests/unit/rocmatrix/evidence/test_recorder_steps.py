"""What each step of recording writes, and what it leaves as it is. The runs are STAND-INS."""

import sqlite3
import zlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rocmatrix.containers import engine
from rocmatrix.evidence import from_events, recorder, schema, store, unfinished_runs
from rocmatrix.evidence.record import Record
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build
from rocmatrix.jobs import programs, runner
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import SMOKE
from rocmatrix.jobs.runner import Finished, Trouble
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify.finding import Check
from rocmatrix.verify.proof import Proof
from tests.fixtures import sysfs
from tests.fixtures.cells import CPU, GFX1100

LABELS = {"org.rocmatrix.inputs": "5" * 64, "org.rocmatrix.base": "mirror/debian"}
IMAGE = engine.Image(id="sha256:" + "9" * 64, labels=LABELS, size=1000)
BUILT = build.Built(tag="rocmatrix:t", inputs="8" * 64, argv=(), image=IMAGE, rebuilt=True, seconds=2.0)
VERDICT = {"event": "probe", "probe": "blas", "status": "pass", "device": {"kind": "cpu", "name": "a", "arch": "b"}}
PASSED = Finished(status=0, events=(VERDICT,))


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setenv("ROCMATRIX_NIGHT", "n7")
    monkeypatch.setattr(programs, "commit", lambda: "abc")
    return path


@pytest.fixture
def place(tmp_path):
    host = read_hardware(sysfs.no_driver(tmp_path / "host"))
    return recorder.Place(cell=CPU, hardware=host, where="container", image="sha256:" + "4" * 64, labels=LABELS)


def requested(program=SMOKE, **options):
    return JobRequest(program=program, request=Request(), where="container", options=options)


def test_place_is_native_and_unforced_where_nothing_else_is_stated(place):
    plain = recorder.Place(cell=CPU, hardware=place.hardware)
    assert (plain.where, plain.image, plain.labels, plain.forced, plain.requested_probes) == (
        "native", None, None, False, ()
    )  # fmt: skip


def test_file_that_a_person_names_counts_for_this_program_and_those_it_starts(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert recorder.evidence_file() == path
    assert recorder.evidence_file("~/a.db") == tmp_path / "a.db"
    recorder.use("")
    assert recorder.evidence_file() == path
    recorder.use("~/b/../c.db")
    assert schema.os.environ["ROCMATRIX_EVIDENCE"] == str(tmp_path / "c.db")
    monkeypatch.delenv("ROCMATRIX_EVIDENCE")
    assert recorder.evidence_file() == schema.default_file(recorder.ROOT)


def test_error_while_recording_is_reported_by_its_first_line_and_none_returned(path, capsys):
    @recorder.harmless
    def keep(text, *, more):
        raise ValueError(f"{text}\n{more}")

    assert keep("first", more="second") is None
    what = "its record could not be made: ValueError: first"
    assert capsys.readouterr().err == RocmatrixError("RM620", what=what, where=str(path)).render() + "\n"
    assert recorder.harmless(lambda text, *, more: text + more)("a", more="b") == "ab"


def test_build_is_recorded_with_its_log_its_labels_and_its_night(path, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "log_file", lambda cell, root: tmp_path / f"{cell.name}-{root == recorder.ROOT}.log")
    (tmp_path / f"{CPU.name}-True.log").write_bytes(b"own \xff")
    (tmp_path / "given.log").write_text("given")
    recorder.record_build(CPU, BUILT)
    recorder.record_build(CPU, replace(BUILT, inputs="7" * 64), log=tmp_path / "given.log")
    recorder.record_build(CPU, replace(BUILT, inputs="6" * 64), log=tmp_path / "gone.log")
    recorder.record_build(CPU, replace(BUILT, inputs="3" * 64, rebuilt=False))
    made = store.read(path)
    assert [(each.inputs[0], each.log) for each in made] == [("8", "own \ufffd"), ("7", "given"), ("6", ""), ("3", "")]
    assert {(each.night, each.seconds, each.image, each.marks) for each in made} == {
        ("n7", 2.0, IMAGE.id, ("other-base",))
    }
    assert {(number.name, number.value) for each in made for number in each.numbers} == {("size", 1000.0)}


def test_build_on_a_simulated_machine_does_not_stand_for_one_on_a_real_machine(path):
    marked = from_events.of_build(
        CPU, inputs=BUILT.inputs, image=IMAGE.id, seconds=1.0, log="", marks=("simulated",), night=None
    )
    store.add(path, [marked])
    for _ in range(2):
        recorder.record_build(CPU, replace(BUILT, rebuilt=False))
    assert ["simulated" in each.marks for each in store.read(path)] == [True, False]


def test_build_of_an_image_that_was_simulated_is_known_by_its_label(path):
    simulated = replace(IMAGE, labels=LABELS | {"org.rocmatrix.simulated": "yes"})
    for _ in range(2):
        recorder.record_build(CPU, replace(BUILT, image=simulated, rebuilt=False))
    assert ["simulated" in each.marks for each in store.read(path)] == [True]


@pytest.mark.parametrize(("named", "night"), [("my night/1", None), ("n" * 201, None), ("", None), ("n-7", "n-7")])
def test_name_of_a_night_that_no_record_can_bear_loses_no_record(path, monkeypatch, named, night):
    monkeypatch.setenv("ROCMATRIX_NIGHT", named)
    recorder.record_build(CPU, BUILT)
    assert [each.night for each in store.read(path)] == [night]


def test_build_is_known_by_its_newest_record_without_trouble_of_the_host(path):
    idle = replace(BUILT, rebuilt=False)
    recorder.record_build(CPU, BUILT)
    trouble = Trouble(stage="disk", detail="full")
    recorder.record_failed_build(CPU, failed(inputs="7" * 64, trouble=trouble))
    store.add(path, [from_events.of_proof(CPU, proof(), inputs="7" * 64, image=IMAGE.id, night=None, marks=())])
    recorder.record_build(GFX1100, replace(BUILT, inputs="6" * 64))  # the newest of all, and of another cell
    recorder.record_build(CPU, idle)
    assert [each.kind for each in store.read(path)] == ["build", "build", "prove", "build"]
    recorder.record_failed_build(CPU, failed(inputs=BUILT.inputs))  # the same inputs, and no image
    recorder.record_build(CPU, idle)
    own = [each.passed for each in store.read(path, cell=CPU.name) if each.kind == "build"]
    assert own == [True, False, False, True]


def failed(*, inputs="6" * 64, trouble=None):
    planned = build.Built(tag="t", inputs=inputs, argv=(), labels=LABELS)
    return build.BuildFailedError(RocmatrixError("RM202", what="simulated"), planned=planned, trouble=trouble)


def proof():
    return Proof(cell=CPU.name, architecture=None, subject="s", checks=(Check(name="files", summary="ok"),))


def test_failed_build_is_recorded_with_its_log_or_the_hosts_trouble(path, tmp_path):
    log = build.log_file(CPU, tmp_path)
    log.parent.mkdir(parents=True)
    log.write_text("the last step")
    recorder.record_failed_build(CPU, failed(), root=tmp_path)
    error = failed(trouble=Trouble(stage="registry", detail="x" * 5000))
    recorder.record_failed_build(CPU, error, root=tmp_path)
    own, hosts = store.read(path)
    assert (own.log, own.trouble, hosts.log) == ("the last step", None, error.render())
    assert (hosts.trouble.stage, hosts.trouble.words) == ("registry", "x" * 4000)
    for each in (own, hosts):
        assert (each.night, each.seconds, each.image, each.marks, each.inputs) == (
            "n7", 0.0, None, ("other-base",), "6" * 64
        )  # fmt: skip


@pytest.mark.parametrize("fails", [True, False])
def test_failed_build_goes_on_as_it_is_and_another_error_is_no_record(path, fails):
    error = failed() if fails else RocmatrixError("RM101", what="x")
    with pytest.raises(RocmatrixError) as caught, recorder.failed_build(CPU):
        raise error
    assert caught.value is error
    assert [(each.cell, each.passed) for each in store.read(path)] == [(CPU.name, False)] * fails
    with recorder.failed_build(CPU):
        pass


@pytest.mark.parametrize(
    ("changes", "ended", "counts"),
    [
        ({}, {}, True),
        ({"recorded": False}, {}, False),
        ({}, {"has_usage_error": True}, False),
        ({}, {"was_complete": True}, False),
        ({"refuses_input": True}, {"has_input_error": True}, False),
        ({"refuses_input": True}, {}, True),
        ({}, {"has_input_error": True}, True),
        ({"may_be_inapplicable": True}, {"inapplicable": True}, False),
        ({"may_be_inapplicable": True}, {}, True),
        ({}, {"inapplicable": True}, True),
    ],
)
def test_end_is_evidence_unless_it_was_no_measurement_of_the_cell(changes, ended, counts):
    program = SimpleNamespace(**{"recorded": True, "refuses_input": False, "may_be_inapplicable": False} | changes)
    no = {"has_usage_error": False, "has_input_error": False, "inapplicable": False, "was_complete": False}
    done = no | ended
    assert recorder.is_evidence(SimpleNamespace(program=program), SimpleNamespace(**done)) is counts


def test_run_is_recorded_where_it_ran_with_all_that_names_it(path, place):
    probes = replace(place, requested_probes=("blas", "conv"), forced=True)
    with recorder.watched(requested(probe=["blas"]), probes) as keep:
        (lost,) = noted(path)
        assert (lost.passed, lost.log, lost.cell) == (False, recorder.LOST, CPU.name)
        made = keep(PASSED)
    assert noted(path) == []
    assert [made] == store.read(path)
    assert (made.kind, made.where, made.image, made.inputs, made.whole, made.commit, made.night) == (
        "smoke", "container", place.image, "5" * 64, False, "abc", "n7"
    )  # fmt: skip
    assert set(made.marks) >= {"other-base", "forced"}
    assert made.hardware.kernel == place.hardware.kernel


def noted(path):
    """The records that the notes of runs in progress hold."""
    with schema.opened(path, write=False) as connection:
        rows = connection.execute("SELECT body FROM started").fetchall()
    return [Record.model_validate_json(zlib.decompress(body)) for (body,) in rows]


def test_container_that_ran_names_its_own_image_and_labels(path, place):
    own = {"org.rocmatrix.inputs": "1" * 64}
    container = runner.Container(id="c" * 64, image="sha256:" + "2" * 64, labels=own, sealed=True)
    made = recorder.record_job(requested(), place, replace(PASSED, container=container))
    assert (made.image, made.inputs, made.marks) == (container.image, "1" * 64, ())
    native = recorder.record_job(requested(), replace(place, where="native", image=None, labels=None), PASSED)
    assert (native.image, native.inputs, native.where) == (None, None, "native")
    derived = replace(container, sealed=False)
    ends = (PASSED, Finished(status=1, events=({**VERDICT, "status": "fail"},)))
    inputs = [recorder.record_job(requested(), place, replace(end, container=derived)).inputs for end in ends]
    assert inputs == [None, "1" * 64]
    other = JobRequest(program=SMOKE, request=Request(), where="container", base="mirror/x", options={})
    assert recorder.record_job(other, replace(place, labels=None), PASSED).marks == ("other-base",)
    rehearsed = replace(place, hardware=replace(place.hardware, simulated=True), labels=None)
    assert recorder.record_job(requested(), rehearsed, PASSED).marks == ("simulated",)


def test_output_of_which_no_record_can_be_made_has_failed_with_the_reason(path, place, monkeypatch):
    made, whole = [], from_events.OF_PROGRAM["smoke"]

    def once(cell, done, hardware, **about):
        made.append(done)
        if len(made) == 1:
            raise KeyError("simulated \ud800")
        return whole(cell, done, hardware, **about)

    monkeypatch.setitem(from_events.OF_PROGRAM, "smoke", once)
    container = runner.Container(id="c" * 64, image="sha256:" + "2" * 64, labels={}, sealed=True)
    for status, kept in ((0, -1), (7, 7)):
        made.clear()
        found = recorder.record_job(requested(), place, replace(PASSED, status=status, container=container))
        assert (found.passed, found.log, found.image) == (
            False, "what it said is no record: KeyError: 'simulated \\ud800'", container.image
        )  # fmt: skip
        assert (made[1].status, made[1].events) == (kept, ())


@pytest.mark.parametrize("how", ["usage", "refused", "not recorded"])
def test_note_of_a_run_that_is_no_evidence_is_forgotten(path, place, monkeypatch, how):
    program = replace(SMOKE, recorded=False) if how == "not recorded" else SMOKE
    wrong = Finished(status=2, events=({"event": "error", "code": "RM590"},))
    if how == "refused":
        with pytest.raises(RocmatrixError), recorder.watched(requested(program), place):
            raise RocmatrixError("RM201", what="gone")
    else:
        with recorder.watched(requested(program), place) as keep:
            assert path.exists() is (how == "usage")
            assert keep(wrong) is None
    if path.exists():
        assert (noted(path), store.read(path)) == ([], [])
    assert path.exists() is (how != "not recorded")


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt(), BrokenPipeError(), runner.Interrupted(replace(PASSED, status=130))]
)
def test_run_that_was_stopped_is_recorded_and_goes_on_to_end(path, place, stop):
    with pytest.raises(type(stop)) as caught, recorder.watched(requested(), place):
        raise stop
    assert caught.value is stop
    (made,) = store.read(path)
    assert noted(path) == []
    own = isinstance(stop, runner.Interrupted)
    assert [verdict.probe for verdict in made.verdicts] == (["blas"] if own else [])
    assert own or made.trouble.stage == "signal"


@pytest.mark.parametrize("part", ["begin", "end"])
@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("disk I/O error"), OSError("full"), RocmatrixError("RM621", what="not ours")]
)
def test_note_that_cannot_be_written_is_reported_and_the_run_goes_on(path, place, monkeypatch, capsys, part, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(store, "_reported", set())
    monkeypatch.setattr(unfinished_runs, part, refuse)
    with recorder.watched(requested(), place) as keep:
        made = keep(PASSED)
    assert made.passed
    assert [each.passed for each in store.read(path)] == [True] * (part == "begin")
    stderr = capsys.readouterr().err
    why = error.what if isinstance(error, RocmatrixError) else str(error)
    assert stderr == (
        RocmatrixError("RM620", what=f"the smoke of {CPU.name}", where=str(path), why=why).render() + "\n"
    )  # fmt: skip


def test_store_that_cannot_be_read_knows_no_build(path, monkeypatch):
    calls = []
    for error in (sqlite3.OperationalError("x"), OSError("x"), RocmatrixError("RM621", what="x")):

        def refuse(file, *, cell, logs, error=error):
            calls.append((file, cell, logs))
            raise error

        monkeypatch.setattr(store, "read", refuse)
        assert recorder._records(CPU.name) == []
    assert calls == [(path, CPU.name, False)] * 3


def test_proof_is_recorded_with_the_image_that_it_is_of(path):
    with recorder.proving(CPU, IMAGE) as keep:
        keep(proof())
    with pytest.raises(ValueError, match="simulated"), recorder.proving(CPU, IMAGE):
        raise ValueError("simulated")
    kept, lost = store.read(path)
    assert [verdict.probe for verdict in kept.verdicts] == ["files"]
    assert (kept.passed, lost.passed, lost.trouble) == (True, False, None)
    assert "simulated" in lost.model_dump_json()
    for each in (kept, lost):
        assert (each.kind, each.cell, each.inputs, each.image, each.night, each.marks) == (
            "prove", CPU.name, "5" * 64, IMAGE.id, "n7", ("other-base",)
        )  # fmt: skip


def test_lost_runs_are_settled_in_the_file_of_this_program(path, monkeypatch):
    calls = []
    monkeypatch.setattr(unfinished_runs, "settle", calls.append)
    recorder.settle()
    assert calls == [path]


@pytest.mark.parametrize(("code", "reported"), [("RM621", False), ("RM622", True)])
def test_file_that_is_no_evidence_is_left_to_whoever_reads_it_next(path, monkeypatch, capsys, code, reported):
    def refuse(file):
        raise RocmatrixError(code, what="simulated")

    monkeypatch.setattr(unfinished_runs, "settle", refuse)
    recorder.settle()
    assert ("RM620" in capsys.readouterr().err) is reported


def test_reason_that_is_no_text_is_replaced_and_a_lost_run_ended_without_a_status(path, place, monkeypatch):
    made, whole = [], from_events.OF_PROGRAM["smoke"]

    def refuse(cell, done, hardware, **about):
        made.append(done)
        if done.events:
            raise ValueError("odd \ud800")
        return whole(cell, done, hardware, **about)

    monkeypatch.setitem(from_events.OF_PROGRAM, "smoke", refuse)
    with recorder.watched(requested(), place) as keep:
        assert keep(PASSED).log == "what it said is no record: ValueError: odd ?"
    assert [done.status for done in made] == [-1, 0, -1]
    assert made[0].stderr_tail == recorder.LOST.encode()
