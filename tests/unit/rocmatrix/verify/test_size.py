"""The whole outcome of a size: its name, words, numbers and notes, which a proof's record is made of."""

from dataclasses import replace

import pytest

from rocmatrix.matrix.kernel_library import LIMIT, Baseline
from rocmatrix.verify import size
from rocmatrix.verify.finding import Check, Finding
from rocmatrix.verify.size import Recorded, check
from tests.fixtures import cells

ENTRY = "{} bytes of c are on record since 2026-11-22; `./invokew evidence --sizes` writes a baseline of it"
RECORDED = Recorded(bytes=1000, date="2026-11-21", of="the first image")
WORDS = "{} bytes, {} of the 1000 of 2026-11-21 (the first image)"


def baseline(limit=LIMIT, **newest):
    sizes = [{"bytes": 2000, "date": "2026-01-01", "of": "old"}, {"bytes": 1000, "date": "2026-11-21", "of": "a test"}]
    return Baseline.model_validate({"cell": "c", "sizes": sizes, "limit": limit} | newest)


def outcome(size, known=None, **more):
    return check(size, known, cell="c", today="2026-11-22", **more)


@pytest.mark.parametrize("size", [0, -1])
def test_image_without_a_byte_fails_whatever_else_is_given(size):
    empty = Finding(code="RM218", what="the image holds no byte")
    expected = Check(name="size", summary="no byte", findings=(empty,), data={"bytes": size})
    assert outcome(size, accept="why not") == outcome(size, baseline()) == expected


def test_single_byte_is_a_size():
    assert outcome(1).status == "not checked"


def test_accepted_size_keeps_the_reason_and_the_entry():
    expected = Check(name="size", summary="accepted: new kernels: 9 bytes", data={"bytes": 9}, notes=(ENTRY.format(9),))
    assert outcome(9, baseline(), accept="new kernels") == expected


def test_first_size_is_left_unchecked_with_its_entry():
    summary = "9 bytes: the first size on record of this cell; later images are compared with it"
    expected = Check(name="size", summary=summary, skipped=True, data={"bytes": 9}, notes=(ENTRY.format(9),))
    assert outcome(9) == expected


@pytest.mark.parametrize(("size", "share"), [(500, "0.500"), (1050, "1.050")])
def test_size_within_the_limit_passes_with_its_share(size, share):
    expected = Check(name="size", summary=WORDS.format(size, share), data={"bytes": size, "baseline": 1000})
    assert outcome(size, recorded=RECORDED) == expected


def test_size_beyond_the_limit_fails_with_both_numbers():
    what = "1051 bytes are more than 1.05 times the 1000 recorded on 2026-11-21"
    assert outcome(1051, recorded=RECORDED) == Check(
        name="size",
        summary=WORDS.format(1051, "1.051"),
        findings=(Finding(code="RM218", what=what),),
        data={"bytes": 1051, "baseline": 1000},
    )


def test_baseline_counts_by_its_newest_size_and_its_own_limit():
    assert outcome(1100, baseline(limit=1.1, limit_reason="for the test")).status == "passed"
    assert outcome(1101, baseline(limit=1.1, limit_reason="for the test")).status == "failed"
    assert outcome(900, baseline()).summary == "900 bytes, 0.900 of the 1000 of 2026-11-21 (a test)"


BASELINE = Baseline.model_validate(
    {"cell": cells.CPU.name, "sizes": [{"bytes": 1000, "date": "2026-11-21", "of": "a test"}]}
)


@pytest.mark.parametrize(("bytes_", "status"), [(900, "passed"), (1050, "passed"), (1051, "failed")])
def test_limit_of_size_is_relative(bytes_, status):
    assert size.check(bytes_, BASELINE, cell="x", today="2026-11-21").status == status


def test_first_size_is_not_checked_and_later_ones_are_compared_with_it():
    first = size.check(1234, None, cell="x", today="2026-11-21")
    assert (first.status, first.data["bytes"]) == ("not checked", 1234)
    assert "first size" in first.summary
    recorded = size.Recorded(bytes=1000, date="2026-11-21", of="the first image")
    for bytes_, status in ((1050, "passed"), (1051, "failed")):
        assert size.check(bytes_, None, cell="x", today="2026-11-22", recorded=recorded).status == status
    taken = size.check(9999, None, cell="x", today="2026-11-22", recorded=recorded, accept="new kernels")
    assert (taken.status, taken.summary.startswith("accepted: new kernels")) == ("passed", True)


def test_checkouts_baseline_comes_before_what_is_on_record():
    recorded = size.Recorded(bytes=10**9, date="2026-11-21", of="a bloated image")
    assert size.check(10**6, BASELINE, cell="x", today="2026-11-22", recorded=recorded).status == "failed"


def test_empty_image_has_no_size_to_take():
    for accept in ("", "why not"):
        assert size.check(0, None, cell="x", today="2026-11-22", accept=accept).status == "failed"


def test_check_that_was_left_out_never_passes():
    passed = size.check(1, BASELINE, cell="x", today="2026-11-21")
    assert replace(passed, skipped=True).status == "not checked"
