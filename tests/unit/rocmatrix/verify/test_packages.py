"""The installed packages against a lock, as a whole outcome."""

import pytest

from rocmatrix.verify import packages
from rocmatrix.verify.finding import Check, Finding
from tests.fixtures import cells

LOCKED = {wheel.name.lower().replace("_", "-"): wheel.version for _, wheel in cells.CPU.wheels}
UNLOCKED = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)


def outcome(**change):
    installed = LOCKED | {name.replace("_", "-"): version for name, version in change.items()}
    return packages.check({name: version for name, version in installed.items() if version}, cells.CPU)


def finding(what, *places):
    return (Finding(code="RM216", what=what, places=places),)


def test_locked_set_passes_with_both_counts():
    count = len(LOCKED)
    assert outcome() == Check(name="packages", summary=f"{count} installed, {count} locked")


@pytest.mark.parametrize("name", ["pip", "setuptools"])
def test_package_of_the_environment_is_left_out_unless_locked(name):
    count = len(LOCKED)
    version = LOCKED.get(name, "99")
    assert outcome(**{name: version}).summary == f"{count} installed, {count} locked"
    if name in LOCKED:
        assert outcome(**{name: "1"}).status == "failed"


def test_differences_of_each_kind_are_a_finding_with_names_in_order():
    found = outcome(torch="1.0", numpy="1.0", sympy=None, filelock=None, wheel="3", leftpad="2")
    assert found.summary == f"{len(LOCKED)} installed, {len(LOCKED)} locked"
    assert found.findings == (
        *finding("locked and not installed", "filelock", "sympy"),
        *finding("installed and not locked", "leftpad 2", "wheel 3"),
        *finding(
            "of another version",
            f"numpy 1.0 where {LOCKED['numpy']} is locked",
            f"torch 1.0 where {LOCKED['torch']} is locked",
        ),
    )


def test_versions_are_compared_as_versions_and_other_text_by_its_letters():
    assert outcome(numpy=f"{LOCKED['numpy']}.0").status == "passed"
    assert outcome(numpy="not a version").status == "failed"
    assert (packages._same("odd", "odd"), packages._same("odd", "even")) == (True, False)


def test_cell_without_a_lock_cannot_pass():
    found = packages.check(LOCKED, UNLOCKED)
    what = f"the cell has no lock to compare with: {UNLOCKED.unlocked_because}"
    assert found == Check(name="packages", summary="no lock", findings=finding(what))


def test_locked_set_passes_with_what_the_environment_brings():
    found = packages.check(LOCKED | {"pip": "24.0"}, cells.CPU)
    assert (found.status, len(LOCKED) > 10) == ("passed", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"torch": "2.12.0+cpu"}, "of another version: torch 2.12.0+cpu where"),
        ({"leftpad": "1.0"}, "installed and not locked: leftpad 1.0"),
        ({"torch": None}, "locked and not installed: torch"),
    ],
)
def test_difference_to_the_lock_fails(change, words):
    installed = {name: version for name, version in (LOCKED | change).items() if version is not None}
    (finding,) = packages.check(installed, cells.CPU).findings
    assert (finding.code, words in finding.summary) == ("RM216", True), finding.summary


def test_empty_install_and_empty_lock_both_fail():
    assert packages.check({}, cells.CPU).status == "failed"
    (finding,) = packages.check(LOCKED, UNLOCKED).findings
    assert (finding.code, "no lock to compare with" in finding.what) == ("RM216", True)
