"""Gates in child processes on this CPU: each fault ends its own gate, and the others have their verdicts."""

from __future__ import annotations

import json
import sys

import pytest

from tests.fixtures.gates import FAULTS, SUBJECT, forked, inject, install_canary
from trainer.run.gates import child
from trainer.run.gates.child import PASSED, UNTRIED, Verdict, tried, verdicts_of
from trainer.run.gates.subject import ADAPTER, CANARY, COMPILE, NF4, PRECISION
from trainer.runtime.child_process import Outcome

GATES = [PRECISION, ADAPTER, NF4, "attention flash", "attention math", CANARY, COMPILE]
STATUS = {"wrong": "wrong", "crash": "crash", "hang": "hang", "memory": "memory", "killed": "memory"}


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("gate", GATES)
def test_fault_ends_its_gate_with_a_verdict(gate: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "hang":
        monkeypatch.setattr(child, "SECONDS", 0.5)
        monkeypatch.setattr(child, "COMPILE_SECONDS", 0.5)
    monkeypatch.setattr(child, "run_limited", forked(lambda: inject(gate, how)))
    (found,) = tried([gate], SUBJECT)
    assert (found.status, found.failed) == (STATUS[how], True)
    assert found.lasting == (how in ("wrong", "crash"))
    assert ("SIGSEGV" in found.why) == (how == "crash")
    assert found.why


def test_healthy_device_passes_and_what_it_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = [PRECISION, ADAPTER, NF4, "attention flash", "attention cudnn", "attention math", CANARY]
    monkeypatch.setattr(child, "run_limited", forked())
    found = {each.gate: each for each in tried(gates, SUBJECT)}
    assert list(found) == gates
    absent = {"attention cudnn", CANARY}
    assert {name for name, each in found.items() if each.status == PASSED} == set(gates) - absent
    assert all(found[name].status == "absent" and found[name].why and not found[name].failed for name in absent)


def test_canary_that_writes_its_numbers_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(source: object, target: object) -> None:
        target.copy_(3 * source + 1)  # type: ignore[attr-defined, operator]

    monkeypatch.setattr(child, "run_limited", forked(lambda: install_canary(launch)))
    assert tried([CANARY], SUBJECT)[0].status == PASSED


def test_gate_that_hangs_costs_its_own_limit_and_not_that_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "START_SECONDS", 1000.0)
    monkeypatch.setattr(child, "SECONDS", 0.5)
    monkeypatch.setattr(child, "COMPILE_SECONDS", 1000.0)
    monkeypatch.setattr(child, "run_limited", forked(lambda: inject(NF4, "hang")))
    (found,) = tried([NF4], SUBJECT)
    assert found.status == "hang"
    assert found.seconds < 100


def test_gates_after_one_that_crashes_are_tried_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "run_limited", forked(lambda: inject(NF4, "crash")))
    found = tried([PRECISION, NF4, "attention math"], SUBJECT)
    assert [(each.gate, each.status) for each in found] == [
        (PRECISION, PASSED),
        (NF4, "crash"),
        ("attention math", PASSED),
    ]


def test_processes_of_their_own_pass_and_crash() -> None:
    """The very program, started as a run starts it; the second on a device that is not there."""
    (found,) = tried([NF4], SUBJECT)
    assert found.status == PASSED
    assert 0 < found.seconds < child.START_SECONDS
    from dataclasses import replace

    (missing,) = tried([NF4], replace(SUBJECT, device="cuda:63"))
    assert (missing.status, missing.failed, missing.lasting) == (UNTRIED, False, False)


def test_program_that_cannot_be_started_leaves_all_untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "PROGRAM", ("/absent/python",))
    assert [each.status for each in tried([NF4, COMPILE], SUBJECT)] == [UNTRIED, UNTRIED]


def outcome(*lines: object, code: int | None = 0, timed_out: bool = False) -> Outcome:
    text = "".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in lines)
    return Outcome(returncode=code, timed_out=timed_out, stdout=text, stderr="last words\n", seconds=3.0)


BEGAN, ENDED = {"began": NF4}, {"ended": NF4, "status": "passed", "why": ""}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (outcome(BEGAN, ENDED), PASSED),
        (outcome(BEGAN, ENDED, code=-11), PASSED),  # a library that crashes at the process's end
        (outcome("noise\n", "[1]\n", BEGAN, "{\n", ENDED), PASSED),
        (outcome(BEGAN, code=-11), "crash"),
        (outcome(BEGAN, code=-6), "crash"),
        (outcome(BEGAN, code=-9), "memory"),
        (outcome(BEGAN, code=-9, timed_out=True), "hang"),
        (outcome(BEGAN, code=child.HUNG), "hang"),
        (outcome(BEGAN, code=3), "crash"),
        (outcome(BEGAN, code=0), "crash"),
        (outcome(code=1), UNTRIED),
        (outcome({"ready": True}, code=-11), UNTRIED),
        (outcome({"ended": "another", "status": "passed", "why": ""}), UNTRIED),
    ],
)
def test_verdict_follows_from_the_lines_and_the_end(end: Outcome, status: str) -> None:
    (found,) = verdicts_of(end, [NF4])
    assert found.gate == NF4
    assert found.status == status


def test_facts_have_what_is_known() -> None:
    verdict = Verdict(gate=NF4, status="wrong", why="w", seconds=1.5)
    assert verdict.facts() == {"status": "wrong", "why": "w", "seconds": 1.5}
    assert Verdict(gate=NF4, status="crash", why="the process ended with status 3").lasting is False


def test_program_finds_the_trainer_that_runs_here() -> None:
    assert child.PROGRAM[0] == sys.executable
    environment = child._environment({"A": "b"})
    assert environment["A"] == "b"
    assert environment["OMP_NUM_THREADS"] == "1"
