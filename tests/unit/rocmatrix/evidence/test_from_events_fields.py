"""Each field of a record is of what was run: compared whole, for STAND-IN builds, proofs and runs that never were."""

import math
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rocmatrix.evidence import from_events
from rocmatrix.evidence.from_events import of_bench, of_build, of_lost_proof, of_proof, of_smoke, of_train
from rocmatrix.evidence.level import instant, why_not
from rocmatrix.evidence.record import Hardware, Number, Trouble, Verdict
from rocmatrix.host import simulated
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs.runner import Finished
from rocmatrix.runtime import trouble as host_trouble
from rocmatrix.runtime.paths import ROOT
from rocmatrix.verify.finding import Check, Finding
from rocmatrix.verify.proof import Proof
from tests.fixtures import cells, sysfs
from tests.fixtures.evidence import IMAGE, INPUTS

PLACE = {"where": "container", "image": IMAGE, "inputs": INPUTS, "commit": "abc"}
VERSIONS = {"torch": "2.7.1", "python": cells.GFX1100.python, "rocm": "6.3"}
NOWHERE = Hardware(device="none")
LONG = "w" * 5000


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    return read_hardware(sysfs.two_rx_7900_xt(tmp_path_factory.mktemp("host") / "machine", render_gid=100))


def test_time_of_a_record_is_this_moment_in_milliseconds():
    assert len(from_events.now()) == len("2026-11-01T12:00:00.000Z")
    assert from_events.now() <= from_events.now()


def test_time_of_a_record_is_in_utc_wherever_the_machine_is(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert abs(instant(from_events.now()) - datetime.now(UTC)) < timedelta(hours=1)
    finally:
        monkeypatch.undo()
        time.tzset()


def fields(record):
    return {name: getattr(record, name) for name in type(record).model_fields if name not in ("at", "series", "number")}


def expected(**given):
    blank = {
        "whole": True, "seconds": 0.0, "image": IMAGE, "inputs": INPUTS, "night": None, "marks": (), "verdicts": (),
        "numbers": (), "commit": None, "trouble": None, "log": "", "log_omitted": 0, "cell": cells.GFX1100.name,
        "versions": VERSIONS,
    }  # fmt: skip
    return blank | given


@pytest.mark.parametrize("image", [IMAGE, None])
def test_record_of_a_build_holds_what_was_made_and_passes_where_an_image_was(image):
    made = of_build(
        cells.GFX1100, inputs=INPUTS, image=image, seconds=1.23456, log="step", marks=["forced"], night="n1"
    )
    assert fields(made) == expected(
        kind="build", where="host", passed=image is not None, image=image, seconds=1.235, marks=("forced",),
        hardware=NOWHERE, log="step", night="n1",
    )  # fmt: skip


def test_record_of_a_proof_holds_each_check_its_findings_and_the_size():
    finding = Finding(code="RM216", what="a set-uid file")
    checks = (
        Check(name="hygiene", summary=LONG, findings=(finding,), data={"bytes": 7}),
        Check(name="size", summary="1000 bytes", data={"bytes": 1000}),
        Check(name="size", summary="not measured", skipped=True),
    )
    proof = Proof(cell="c", architecture=None, subject="image", checks=checks)
    made = of_proof(cells.GFX1100, proof, inputs=INPUTS, image=IMAGE, marks=["unlocked"], night="n1")
    assert fields(made) == expected(
        kind="prove", where="host", passed=False, marks=("unlocked",), hardware=NOWHERE, night="n1",
        log=finding.summary, numbers=(Number(probe="size", name="files", value=1000.0, unit="B"),),
        verdicts=(
            Verdict(probe="hygiene", status="failed", summary="w" * 4000),
            Verdict(probe="size", status="passed", summary="1000 bytes"),
            Verdict(probe="size", status="not checked", summary="not measured"),
        ),
    )  # fmt: skip
    passed = replace(proof, checks=(Check(name="size", summary=""),))
    assert of_proof(cells.GFX1100, passed, inputs=None, image=None, marks=()).passed


def test_findings_of_a_proof_are_a_line_each():
    findings = tuple(Finding(code="RM216", what=name) for name in ("one", "two"))
    proof = Proof(cell="c", architecture=None, subject="", checks=(Check(name="h", summary="", findings=findings),))
    made = of_proof(cells.GFX1100, proof, inputs=None, image=None, marks=())
    assert made.log.splitlines() == [finding.summary for finding in findings]


@pytest.mark.parametrize("trouble", [Trouble(stage="disk", words="full"), None])
def test_lost_proof_fails_unless_the_host_ended_it(trouble):
    made = of_lost_proof(
        cells.GFX1100, ValueError(LONG), inputs=INPUTS, image=IMAGE, marks=["forced"], trouble=trouble, night="n1"
    )
    words = f"ValueError: {LONG}"
    stated = Verdict(probe="proof", status="no verdict", summary=words[:4000])
    assert fields(made) == expected(
        kind="prove", where="host", passed=False, marks=("forced",), hardware=NOWHERE, night="n1", log=words,
        verdicts=() if trouble else (stated,), trouble=trouble,
    )  # fmt: skip


def event(probe="blas", status="pass", **more):
    device = {"kind": "rocm", "name": "SIMULATED card", "arch": "gfx1100:xnack-"}
    return {"event": "probe", "probe": probe, "status": status, "device": device, **more}


@pytest.mark.parametrize(("make", "kind"), [(of_smoke, "smoke"), (of_bench, "bench")])
def test_record_of_verdicts_holds_the_machine_what_was_requested_and_what_was_not_answered(make, kind, host):
    stated = event(
        seconds=2, summary="fine", cards=["a", 1], present=["a", 1, "b"], versions={"torch": 2, "hip": None},
        numbers=[{"name": "x", "value": 3, "unit": "s"}, {"value": True}, {"value": 10**400}, {"value": 4}, "none"],
    )  # fmt: skip
    later = {**stated, "event": "other", "probe": "later"}
    events = (stated, later, event("first", "not-applicable", versions={"rocm": "6"}))
    made = make(
        cells.GFX1100, Finished(status=3, events=events), host, requested=("blas", "conv"), whole=False, **PLACE
    )
    assert [line[:10] for line in made.log.splitlines()] == ['{"event": '] * 3
    assert fields(made) == expected(
        kind=kind, where="container", passed=False, whole=False, commit="abc", log=made.log,
        versions={"torch": "2", "rocm": "6"},
        hardware=Hardware(
            device="rocm", cards=("SIMULATED card",), gfx=("gfx1100", "gfx1100"), seen=("gfx1100",),
            driver=f"{host.driver.version} ({host.driver.origin})" if host.driver else None, kernel=host.kernel,
            ids=("1002:744c",),
        ),
        verdicts=(
            Verdict(
                probe="blas", status="pass", summary="fine", seconds=2.0, cards=("a", "1"), present=("a", "1", "b")
            ),
            Verdict(probe="first", status="not-applicable"),
            Verdict(probe="conv", status="no verdict", summary="The suite ended with status 3 before."),
        ),
        numbers=(
            Number(probe="blas", name="x", value=3.0, unit="s"), Number(probe="blas", name="None", value=4.0, unit=""),
        ),
    )  # fmt: skip


def test_versions_of_a_suite_that_passed_are_those_that_it_states_and_no_others(host):
    passed = of_smoke(cells.GFX1100, Finished(status=0, events=(event(),)), host, **PLACE)
    assert (passed.passed, passed.versions) == (True, {})
    two = (event(versions={"torch": "2.7.1"}), event(versions={"torch": "2.6.0", "python": "3.12"}))
    assert of_smoke(cells.GFX1100, Finished(status=0, events=two), host, **PLACE).versions == {
        "torch": "2.7.1 and 2.6.0",
        "python": "3.12",
    }


def test_versions_of_a_suite_that_failed_and_states_none_are_the_cells(host):
    assert of_smoke(cells.GFX1100, Finished(status=1, events=(event(),)), host, **PLACE).versions == VERSIONS
    cpu = of_smoke(cells.CPU, Finished(status=0, events=()), host, **PLACE).versions
    assert cpu == {"torch": "2.13.0", "python": cells.CPU.python}


def test_cpu_has_no_card_and_no_instruction_set(host):
    device = {"kind": "cpu", "name": "a processor", "arch": "x86_64"}
    made = of_smoke(cells.CPU, Finished(status=0, events=(event(device=device),)), host, **PLACE)
    assert (made.hardware.device, made.hardware.cards, made.hardware.seen) == ("cpu", (), ())


def test_machine_without_a_driver_records_none(tmp_path):
    bare = read_hardware(sysfs.no_driver(tmp_path / "bare"))
    made = of_smoke(cells.GFX1100, Finished(status=0, events=(event(),)), bare, **PLACE)
    assert made.hardware.driver is None


def test_trouble_of_the_host_is_recorded_with_its_words_cut(host):
    lost = Finished(status=125, events=(), trouble=host_trouble.Trouble(stage="engine", detail=LONG))
    made = of_smoke(cells.GFX1100, lost, host, requested=("blas",), **PLACE)
    assert made.trouble == Trouble(stage="engine", words="w" * 4000)
    assert (made.passed, made.whole, made.verdicts) == (False, False, ())
    assert f"host: engine: {LONG}" in made.log.splitlines()


def test_probe_without_a_verdict_and_one_that_has_nothing_to_do_are_no_failure_before_trouble(host):
    trouble = host_trouble.Trouble(stage="disk", detail="full")
    idle = Finished(status=125, events=(event(), event("pair", "not-applicable")), trouble=trouble)
    assert of_smoke(cells.GFX1100, idle, host, **PLACE).trouble == Trouble(stage="disk", words="full")


@pytest.mark.parametrize(("failed", "marks"), [(False, ("forced", "nvidia")), (True, ("forced",))])
def test_another_makers_card_is_believed_of_a_pass_alone_where_the_kernel_lists_amd_cards(failed, marks, host):
    cuda = event(status="fail" if failed else "pass", device={"kind": "cuda", "name": "b", "arch": "sm_90"})
    made = of_smoke(cells.GFX1100, Finished(status=int(failed), events=(cuda,)), host, marks=("forced",), **PLACE)
    assert made.marks == marks


def test_failed_run_on_another_makers_card_is_marked_where_the_kernel_lists_no_amd_card(tmp_path):
    bare = read_hardware(sysfs.no_driver(tmp_path / "bare"))
    cuda = event(status="fail", device={"kind": "cuda", "name": "b", "arch": "sm_90"})
    made = of_smoke(cells.GFX1100, Finished(status=1, events=(cuda,)), replace(bare, cards=()), **PLACE)
    assert made.marks == ("nvidia",)


def trained(host, *, events=(), status=0, trouble=None, words=b"", log=None, **place):
    device = {"kind": "rocm", "name": "SIMULATED card", "arch": "gfx1100"}
    start = {"event": "start", "device": device, "data": {"source": "a market"}}
    done = Finished(status=status, events=(start, *events), trouble=trouble, stderr_tail=words, log=log)
    return of_train(cells.GFX1100, done, host, **PLACE | place)


DONE = {"event": "done", "best": {"validation_loss": 0.25}}


@pytest.mark.parametrize(("events", "status"), [((), 0), ((DONE,), 4), ((), 4)])
def test_training_that_did_not_end_well_fails_with_its_status(events, status, host):
    made = trained(host, events=events, status=status, marks=("forced",))
    assert (made.passed, made.verdicts) == (False, (Verdict(probe="train", status=f"ended with {status}"),))
    assert made.marks == ("forced",)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        ((), "it took no step that was measured"),
        (({"event": "step", "loss": 1.0},), "it took no step that was measured"),
        (({"event": "epoch", "train_loss": None, "validation_loss": 0.5},), "its last train_loss is no number"),
        (({"event": "epoch", "validation_loss": math.inf},), "its last validation_loss is no number"),
    ],
)
def test_training_without_a_measured_step_fails_whatever_its_end_states(measured, words, host):
    made = trained(host, events=(*measured, DONE))
    assert not made.passed
    assert made.verdicts == (Verdict(probe="train", status="ended with 0", summary=words),)
    assert why_not(made, cells.GFX1100) is None  # it counts, against the cell


def test_training_that_recovered_from_a_loss_that_is_no_number_has_passed(host):
    events = ({"event": "epoch", "train_loss": None}, {"event": "epoch", "train_loss": 0.5}, DONE)
    assert trained(host, events=events).passed


def test_record_of_a_training_holds_its_end_its_figures_and_its_log(host):
    epoch = {"event": "epoch", "rows_per_second": 2}
    log = ROOT / ".rocmatrix" / "logs" / "train.log"
    made = trained(host, events=(epoch, {**epoch, "event": "other"}, DONE), words=b"end\xff", log=log)
    assert made.passed
    assert made.verdicts == (Verdict(probe="train", status="pass"),)
    assert made.numbers == (
        Number(probe="train", name="epochs", value=1.0, unit="epochs"),
        Number(probe="train", name="rows_per_second", value=2.0, unit="1/s"),
        Number(probe="train", name="best_validation_loss", value=0.25, unit="1"),
    )
    assert made.log.splitlines()[-2:] == ["end\ufffd", "whole log: .rocmatrix/logs/train.log"]
    assert (made.kind, made.versions, made.hardware.cards) == ("train", VERSIONS, ("SIMULATED card",))


def test_log_outside_the_checkout_is_named_without_its_folder(host, tmp_path):
    assert trained(host, log=tmp_path / "train.log").log.splitlines()[-1] == "whole log: train.log"


def test_log_holds_events_as_they_were_written_and_half_a_surrogate_pair_as_a_question_mark(host):
    made = trained(host, events=({"event": "notice", "what": "\u00e9 \ud800"},))
    assert '"what": "\u00e9 ?"' in made.log


@pytest.mark.parametrize(("source", "marks"), [("Synthetic bars", ("synthetic",)), ("not synthetic", ()), (None, ())])
def test_data_are_synthetic_where_their_source_begins_with_the_word(source, marks, host):
    start = {"event": "start", "data": {"source": source}}
    made = of_train(cells.GFX1100, Finished(status=0, events=(start, DONE)), host, **PLACE)
    assert made.marks == marks
    forced = of_train(cells.GFX1100, Finished(status=0, events=(start, DONE)), host, marks=("forced",), **PLACE)
    assert forced.marks == ("forced", *marks)


def test_trouble_that_a_program_states_itself_excuses_a_training_and_no_suite(host):
    error = {"event": "error", "code": "RM541", "title": "the disk is full"}
    made = trained(host, events=(error,), status=1)
    assert (made.verdicts, made.trouble) == ((), Trouble(stage="disk", words="RM541 the disk is full"))
    suite = of_smoke(cells.GFX1100, Finished(status=1, events=(error,)), host, **PLACE)
    assert (suite.trouble, suite.whole) == (None, True)


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "3", None])
def test_figure_that_is_no_finite_number_is_left_out(value, host):
    events = ({"event": "epoch", "rows_per_second": value}, {"event": "done", "best": {"validation_loss": value}})
    assert [number.name for number in trained(host, events=events).numbers] == ["epochs"]


def test_size_of_an_image_is_in_bytes():
    assert from_events.image_numbers(5) == (Number(probe="image", name="size", value=5.0, unit="B"),)


def test_simulation_stand_ins_and_missing_locks_are_marked(monkeypatch, tmp_path, host):
    unlocked = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because is not None)
    assert "unlocked" in from_events.marks_of(unlocked)
    assert from_events.marks_of(cells.GFX1100, host=replace(host, simulated=True)) == ("simulated",)
    assert from_events.marks_of(cells.GFX1100, host=host) == ()
    labels = {"org.rocmatrix.forced": "a-rule", "org.rocmatrix.base": ""}
    assert from_events.marks_of(cells.GFX1100, labels=labels, base="another") == ("forced",)
    monkeypatch.setenv(simulated.VARIABLE, str(tmp_path))
    assert from_events.marks_of(cells.GFX1100) == ("simulated",)


@pytest.mark.parametrize("mark", ["stand-in", "simulated"])
def test_marks_of_an_images_labels_stay_on_another_machine(mark):
    assert from_events.marks_of(cells.GFX1100, labels={f"org.rocmatrix.{mark}": "yes"}) == (mark,)
    assert from_events.marks_of(cells.GFX1100, labels={"org.rocmatrix.lock": "unlocked"}) == ("unlocked",)


def test_names_with_half_a_surrogate_pair_are_recorded_with_a_question_mark(host):
    made = of_smoke(cells.GFX1100, Finished(status=0, events=(event("a\ud800"),)), host, **PLACE)
    assert made.verdicts[0].probe == "a?"


def test_rate_of_a_training_is_its_median(host):
    epochs = [{"event": "epoch", "rows_per_second": rate} for rate in (50, 10, 40, 20, 30)]
    numbers = {number.name: number.value for number in trained(host, events=epochs).numbers}
    assert numbers == {"epochs": 5.0, "rows_per_second": 30.0}


def test_probe_that_failed_before_the_hosts_trouble_counts_alone(host):
    trouble = host_trouble.Trouble(stage="disk", detail="full")
    events = (event(), event("conv", "fail"), event("pair", "not-applicable"))
    made = of_smoke(cells.GFX1100, Finished(status=125, events=events, trouble=trouble), host, **PLACE)
    assert (made.trouble, made.passed, made.whole) == (None, False, False)
    assert made.log.splitlines()[-1] == "host: disk: full"
