"""The journal keeps nights in the order of their beginning, and knows the last good one."""

from rocmatrix.nightly import plan
from rocmatrix.nightly.journal import Journal
from rocmatrix.nightly.night import Outcome
from rocmatrix.nightly.plan import STAGES
from tests.fixtures.night import CELLS, PLAN, Simulated, night


def test_another_plan_or_a_fresh_start_is_another_night(path):
    journal = Journal(path)
    first, _ = journal.begin(PLAN)
    assert journal.begin(PLAN) == (first, True)
    assert journal.begin(PLAN, fresh=True)[0].name != first.name
    changed = plan.Plan(cells=PLAN.cells, inputs=("b" * 64, *PLAN.inputs[1:]))
    assert journal.begin(changed)[1] is False


def test_last_good_night_is_one_that_smoked_and_ended(path, done):
    good, _ = night(path, Simulated(done))
    ends = {(CELLS[0].name, "smoke"): Outcome(state="failed")}
    bad, _ = night(path, Simulated(done, ends=ends))
    journal = Journal(path)
    open_one, _ = journal.begin(PLAN)
    assert journal.last_good(CELLS[0].name, before=open_one.name) == good.name
    assert journal.last_good(CELLS[1].name, before=open_one.name) == bad.name
    assert journal.last_good(CELLS[0].name, before=good.name) is None


def test_clock_set_back_changes_neither_the_night_to_resume_nor_the_one_before(path, done, monkeypatch):
    def at(when):
        monkeypatch.setattr("rocmatrix.nightly.journal.now", lambda: when)

    at("2026-11-22T02:00:00.000Z")
    first, _ = night(path, Simulated(done))
    at("2026-11-20T02:00:00.000Z")
    second, goes_on = night(path, Simulated(done))
    assert not goes_on
    journal = Journal(path)
    assert [one.name for one in journal.nights()] == [first.name, second.name]
    assert journal.last_good(CELLS[0].name, before=second.name) == first.name
    at("2026-11-19T02:00:00.000Z")
    newest, _ = journal.begin(PLAN)
    at("2026-11-23T02:00:00.000Z")
    assert journal.begin(PLAN) == (newest, True)


def test_night_on_a_simulated_machine_is_never_compared_with_a_real_one(path, done):
    real, _ = night(path, Simulated(done))
    journal = Journal(path)
    simulated = plan.Plan(cells=PLAN.cells, inputs=PLAN.inputs, simulated=True)
    begun, goes_on = journal.begin(simulated)
    assert not goes_on
    assert journal.last_good(CELLS[0].name, before=begun.name) is None
    for stage in STAGES:
        journal.mark(begun.name, CELLS[0].name, stage, "passed")
    journal.end(begun.name)
    again, _ = journal.begin(simulated)
    assert journal.last_good(CELLS[0].name, before=again.name) == begun.name
    newest, _ = journal.begin(PLAN)
    assert journal.last_good(CELLS[0].name, before=newest.name) == real.name
