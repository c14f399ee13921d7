"""Contents of the pages: squares, next steps, regressions and runs, from records whose cards are SIMULATED."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rocmatrix.evidence.dashboard.view import CPU as CPU_CARD
from rocmatrix.evidence.dashboard.view import LOGS_SHOWN, RUNS_SHOWN, Square, cell_page, regressions, sections
from rocmatrix.evidence.level import LEVELS, CellStatus
from tests.fixtures.cells import CPU, GFX1100, MATRIX
from tests.fixtures.evidence import INPUTS, at, record, smoke

START = datetime.fromisoformat(at(0)).astimezone(UTC)


def page(*records, cell=GFX1100, hours=48, current=INPUTS):
    return cell_page(cell, records, rendered=True, current=current, now=START + timedelta(hours=hours))


def status(**more):
    return CellStatus(**{"cell": "c", "card": "Card", "level": "built"} | more)


def square(**more):
    return Square(card=more.pop("card", "Card"), cell_status=status(**more), age=more.get("age", ""), regressed=())


def test_page_without_records_has_a_square_for_each_card_of_the_cell():
    found = page()
    assert [one.card for one in found.squares] == list(GFX1100.cards)
    assert {one.cell_status.level for one in found.squares} == {"rendered"}
    assert (found.proof, found.runs, found.suites, found.plots) == (None, (), (), ())
    assert [one.card for one in page(cell=CPU).squares] == [CPU_CARD]


@pytest.mark.parametrize(("hours", "age"), [(0, "0 h ago"), (47, "47 h ago"), (48, "2 days ago"), (-5, "0 h ago")])
def test_age_of_a_level_is_in_hours_up_to_two_days(hours, age):
    # a record of a clock that runs ahead is not older than now
    found = page(record("build"), hours=hours)
    assert {one.age for one in found.squares} == {age}


def test_probe_that_no_longer_passes_is_a_regression_of_its_card():
    found = page(smoke(0), smoke(5, status="fail"), smoke(3, status="fail", cell="another"))
    assert [change.what for change in regressions([found])] == ["regressed"]
    assert [len(one.regressed) for one in found.squares if one.card == found.runs[0].record.card] == [1]
    assert sum(len(one.regressed) for one in found.squares) == 1


def test_regressions_have_failures_first():
    slower = page(smoke(0, tflops=100.0), smoke(5, tflops=10.0))
    failed = page(smoke(0), smoke(5, status="fail"))
    found = regressions([slower, failed])
    assert [change.failure for change in found] == sorted((change.failure for change in found), reverse=True)
    assert {change.failure for change in found} == {True, False}


def test_newest_proof_and_runs_are_shown_newest_first_and_bounded():
    records = [record("prove", hour, log=f"log {hour}") for hour in range(RUNS_SHOWN + 5)]
    found = page(*records)
    assert found.proof.record.at == records[-1].at
    assert [run.record.at for run in found.runs] == [one.at for one in records[:4:-1]]
    assert len(found.logs) == LOGS_SHOWN


def test_runs_of_other_cells_are_left_out():
    assert page(record("build", cell=CPU.name)).runs == ()


@pytest.mark.parametrize("level", LEVELS)
def test_next_step_is_the_next_level_and_none_after_the_last(level):
    step = square(level=level).next_step
    if level == LEVELS[-1]:
        assert step == ""
    elif level == "smoked":  # two cards are no condition for training on one
        assert step.startswith("for trained: ") and "; for two-gpu: " in step
    else:
        assert step.startswith(f"for {LEVELS[LEVELS.index(level) + 1]}: ./invokew")


def test_cpu_is_never_sent_to_two_cards():
    step = square(card=CPU_CARD, level="smoked").next_step
    assert step == "for trained: ./invokew train in its image, on this CPU"


@pytest.mark.parametrize(("count", "words"), [(1, "1 record set aside"), (2, "2 records set aside")])
def test_records_that_count_for_nothing_are_counted(count, words):
    assert square(level=LEVELS[-1], set_aside=count).next_step == words


def test_summary_holds_all_that_colours_show():
    found = Square(
        card="Card", cell_status=status(failing=("smoke", "train"), simulated=True), age="3 h ago", regressed=("a", "b")
    )
    assert found.summary == "simulated: built; seen 3 h ago; failing: smoke, train; 2 regressed"
    assert replace(found, cell_status=status(), age="", regressed=()).summary == "built"


def test_section_has_a_square_for_each_card_that_one_of_its_cells_was_on():
    pages = {cell.name: cell_page(cell, [], rendered=True, current=None, now=START) for cell in MATRIX.cells}
    found = sections(MATRIX, pages)
    assert [one.architecture for one in found] == list(
        dict.fromkeys(cell.architecture or CPU_CARD for cell in MATRIX.cells)
    )
    assert sum(len(one.rows) for one in found) == len(MATRIX.cells)
    assert all(tuple(each.card for each in row.squares) == one.cards for one in found for row in one.rows)


def test_outcome_of_a_run_is_text_and_a_style():
    passed, failed = page(smoke(0)).runs[0], page(smoke(0, status="fail")).runs[0]
    assert [(run.outcome, run.style) for run in (passed, failed)] == [("passed", "smoked"), ("failed", "bad")]
