"""What passed and does not now is a failure; figures that drift are reported where the worse direction is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.evidence.compare import Change, compare
from rocmatrix.evidence.record import Hardware, Number, Verdict
from tests.fixtures.evidence import CARD, record, rocm, smoke

CELL = "rocm6.3-torch2.7.1-gfx1100"


def changes_of(before, after):
    return [(change.probe, change.what, change.failure) for change in compare(CELL, before, after)]


@pytest.mark.parametrize("status", ["fail", "timeout", "crash", "no-device"])
def test_probe_that_passed_and_does_not_has_regressed(status):
    assert changes_of([smoke()], [smoke(24, status=status)]) == [("blas", "regressed", True)]
    assert changes_of([smoke(status=status)], [smoke(24)]) == [("blas", "repaired", False)]


def test_probe_that_is_no_longer_run_has_vanished():
    assert changes_of([smoke(two="pass")], [smoke(24)]) == [("two_gpu_step", "vanished", True)]
    assert changes_of([smoke(two="fail")], [smoke(24)]) == []
    (change,) = compare(CELL, [smoke(two="pass")], [smoke(24)])
    assert (change.before, change.after) == ("pass", "no verdict")


def test_run_without_verdicts_is_compared_by_its_end():
    (change,) = compare(CELL, [record("build")], [record("build", 24, passed=False)])
    assert (change.before, change.after) == ("passed", "failed")


def test_probe_that_passed_and_has_nothing_to_do_now_has_vanished():
    assert changes_of([smoke(two="pass")], [smoke(24, two="not-applicable")]) == [("two_gpu_step", "vanished", True)]
    assert changes_of([smoke(two="not-applicable")], [smoke(24)]) == []


def test_cell_that_was_not_smoked_this_night_has_lost_nothing():
    assert changes_of([smoke(), record("build")], [record("build", 24)]) == []


def test_newest_record_of_a_night_decides():
    assert changes_of([smoke()], [smoke(24, status="fail"), smoke(25)]) == []


def test_build_that_fails_has_regressed():
    assert changes_of([record("build")], [record("build", 24, passed=False)]) == [("build", "regressed", True)]


@pytest.mark.parametrize(
    ("unit", "before", "after", "what"),
    [
        ("TFLOP/s", 100, 85, "slower"),
        ("TFLOP/s", 100, 95, None),
        ("GB/s", 100, 120, "faster"),
        ("TFLOP/s", 1000, 1099, None),
        ("TFLOP/s", 1000, 1101, "faster"),
        ("TFLOP/s", 1000, 901, None),
        ("TFLOP/s", 0.5, 0.25, "slower"),
        ("TFLOP/s", -1, -3, None),
        ("ms", 10, 12, "slower"),
        ("ms", 10, 8, "faster"),
        ("s", 1000, 1099, None),
        ("s", 10, 20, "slower"),
        ("us", 10, 20, "slower"),
        ("B", 1000, 1099, None),
        ("B", 100, 120, "grown"),
        ("B", 100, 50, None),
        ("1", 1, 9, None),
        ("TFLOP/s", 0, 9, None),
    ],
)
def test_drifts(unit, before, after, what):
    def made(hours, value):
        return smoke(hours, numbers=(Number(probe="blas", name="x", value=float(value), unit=unit),))

    assert changes_of([made(0, before)], [made(24, after)]) == ([("blas x", what, False)] if what else [])


def figures(hours, *names):
    return smoke(hours, numbers=tuple(Number(probe="blas", name=name, value=value, unit="s") for name, value in names))


def test_figure_that_is_gone_is_no_change_and_the_next_one_is_still_compared():
    (change,) = compare(CELL, [figures(0, ("a", 1.0), ("b", 0.0), ("c", 12345.6))], [figures(1, ("b", 1), ("c", 2))])
    assert (change.probe, change.before, change.after) == ("blas c", "1.235e+04 s", "2 s")
    assert (change.cell, change.card) == (CELL, CARD)


def test_change_is_described_on_one_line_with_its_card_where_it_has_one():
    change = Change(cell="c", card="-", probe="build", what="regressed", before="passed", after="failed")
    assert change.summary == "c: build regressed: passed before, failed now"
    on = Change(cell="c", card="a card", probe="blas", what="vanished", before="pass", after="no verdict")
    assert on.summary == "c on a card: blas vanished: pass before, no verdict now"


def test_changes_are_ordered_by_failure_card_and_probe():
    def night(hours, status):
        verdicts = tuple(Verdict(probe=probe, status=status[probe]) for probe in ("c", "b", "a"))
        fields = {"verdicts": verdicts, "passed": False}
        return [record("smoke", hours + n, hardware=rocm(name=name), **fields) for n, name in enumerate("yx")]

    before = night(0, {"a": "fail", "b": "pass", "c": "pass"})
    found = compare(CELL, before, night(9, {"a": "pass", "b": "fail", "c": "fail"}))
    assert [(c.card, c.probe, c.what, c.before, c.after) for c in found] == [
        *((card, probe, "regressed", "pass", "fail") for card in "xy" for probe in "bc"),
        *((card, "a", "repaired", "fail", "pass") for card in "xy"),
    ]
    assert {change.cell for change in found} == {CELL}


def lost(hours, kind="smoke", device="none", **fields):
    return record(kind, hours, passed=False, hardware=Hardware(device=device), **fields)


@pytest.mark.parametrize("device", ["none", "cpu"])
def test_failed_run_in_which_no_card_answered_is_one_of_each_card_before(device):
    before = [smoke(0, hardware=rocm(name=name)) for name in "ab"]
    found = compare(CELL, before, [lost(24, device=device)])
    assert [(c.card, c.probe, c.what) for c in found if c.probe == "smoke"] == [
        ("a", "smoke", "regressed"),
        ("b", "smoke", "regressed"),
    ]
    assert [c for c in found if c.card not in "ab"] == []


def test_failed_run_on_another_makers_card_is_one_of_that_card_alone():
    assert compare(CELL, [smoke()], [lost(24, device="cuda")]) == []


def test_failed_run_before_stands_for_no_other_card():
    assert changes_of([lost(0), smoke(1)], [smoke(24)]) == []


def test_run_that_failed_with_every_verdict_passed_has_failed_at_its_end():
    assert changes_of([smoke()], [smoke(24, passed=False)]) == [("smoke", "regressed", True)]
    assert changes_of([smoke(passed=False)], [smoke(24, passed=False)]) == []


def test_run_whose_verdicts_are_all_not_applicable_is_compared_by_its_end():
    idle = (Verdict(probe="blas", status="not-applicable"),)
    found = changes_of([record("bench", verdicts=idle)], [record("bench", 24, verdicts=idle, passed=False)])
    assert found == [("bench", "regressed", True)]


STATUS = st.sampled_from(["pass", "fail", "timeout"])


@given(st.lists(STATUS, min_size=1, max_size=4), st.lists(STATUS, min_size=1, max_size=4))
def test_comparison_with_itself_is_empty_and_failures_come_first(old, new):
    before = [smoke(hour, status=status) for hour, status in enumerate(old)]
    after = [smoke(100 + hour, status=status) for hour, status in enumerate(new)]
    assert compare(CELL, before, before) == []
    flags = [change.failure for change in compare(CELL, before, after)]
    assert flags == sorted(flags, reverse=True)
    assert any(flags) == (old[-1] == "pass" and new[-1] != "pass")


def test_probe_that_stated_a_failure_and_a_pass_in_one_run_has_regressed():
    both = tuple(Verdict(probe="blas", status=status) for status in ("fail", "pass"))
    (change,) = compare(
        "c", [smoke()], [smoke(1, passed=False, verdicts=(*(v for v in smoke().verdicts if v.probe != "blas"), *both))]
    )
    assert (change.what, change.probe, change.after) == ("regressed", "blas", "fail")
