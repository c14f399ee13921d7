"""What passed and does not now is a failure; figures that drift are told, by units of which the worse way is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.evidence.compare import compare
from rocmatrix.evidence.record import Number
from tests.fixtures.evidence import record, smoke

CELL = "rocm6.3-torch2.7.1-gfx1100"


def told(before, after):
    return [(change.probe, change.what, change.failure) for change in compare(CELL, before, after)]


@pytest.mark.parametrize("status", ["fail", "timeout", "crash", "no-device"])
def test_probe_that_passed_and_does_not_has_regressed(status):
    assert told([smoke()], [smoke(24, status=status)]) == [("blas", "regressed", True)]
    assert told([smoke(status=status)], [smoke(24)]) == [("blas", "repaired", False)]


def test_probe_that_is_no_longer_run_has_vanished():
    assert told([smoke(two="pass")], [smoke(24)]) == [("two_gpu_step", "vanished", True)]
    assert told([smoke(two="fail")], [smoke(24)]) == []


def test_probe_that_passed_and_has_nothing_to_do_now_has_vanished():
    assert told([smoke(two="pass")], [smoke(24, two="not-applicable")]) == [("two_gpu_step", "vanished", True)]
    assert told([smoke(two="not-applicable")], [smoke(24)]) == []


def test_cell_that_was_not_smoked_this_night_has_lost_nothing():
    assert told([smoke(), record("build")], [record("build", 24)]) == []


def test_newest_record_of_a_night_decides():
    assert told([smoke()], [smoke(24, status="fail"), smoke(25)]) == []


def test_build_that_fails_has_regressed():
    assert told([record("build")], [record("build", 24, passed=False)]) == [("build", "regressed", True)]


@pytest.mark.parametrize(
    ("unit", "before", "after", "what"),
    [
        ("TFLOP/s", 100, 85, "slower"),
        ("TFLOP/s", 100, 95, None),
        ("GB/s", 100, 120, "faster"),
        ("ms", 10, 12, "slower"),
        ("B", 100, 120, "grown"),
        ("B", 100, 50, None),
        ("1", 1, 9, None),
        ("TFLOP/s", 0, 9, None),
    ],
)
def test_drifts(unit, before, after, what):
    def made(hours, value):
        return smoke(hours, numbers=(Number(probe="blas", name="x", value=float(value), unit=unit),))

    assert told([made(0, before)], [made(24, after)]) == ([("blas x", what, False)] if what else [])


STATUS = st.sampled_from(["pass", "fail", "timeout"])


@given(st.lists(STATUS, min_size=1, max_size=4), st.lists(STATUS, min_size=1, max_size=4))
def test_comparison_with_itself_is_empty_and_failures_come_first(old, new):
    before = [smoke(hour, status=status) for hour, status in enumerate(old)]
    after = [smoke(100 + hour, status=status) for hour, status in enumerate(new)]
    assert compare(CELL, before, before) == []
    flags = [change.failure for change in compare(CELL, before, after)]
    assert flags == sorted(flags, reverse=True)
    assert any(flags) == (old[-1] == "pass" and new[-1] != "pass")
