"""An image's labels and user against its cell, as a whole outcome."""

import hashlib

import pytest

from rocmatrix.images import render
from rocmatrix.verify import label_check
from rocmatrix.verify.finding import Check, Finding
from tests.fixtures import cells

UNLOCKED = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)
SUMMARY = "5 labels and the user"


def labels(cell):
    lock = hashlib.sha256(render.requirements_lock(cell).encode()).hexdigest()
    return {
        "org.rocmatrix.cell": cell.name,
        "org.rocmatrix.torch": cell.release.torch,
        "org.rocmatrix.rocm": cell.release.rocm or "none",
        "org.rocmatrix.architecture": cell.architecture or "none",
        "org.rocmatrix.lock": "unlocked" if cell.unlocked_because else lock,
    }


@pytest.mark.parametrize("cell", [cells.CPU, cells.GFX1100, UNLOCKED], ids=lambda cell: cell.name)
def test_cells_own_labels_and_user_pass(cell):
    assert label_check.check(labels(cell), user="10001:10001", cell=cell) == Check(name="labels", summary=SUMMARY)


@pytest.mark.parametrize("name", ["cell", "torch", "rocm", "architecture", "lock"])
@pytest.mark.parametrize("said", ["other", None])
def test_label_that_differs_or_is_missing_is_named_with_both_values(name, said):
    right = labels(cells.GFX1100)
    wrong = {key: value for key, value in (right | {f"org.rocmatrix.{name}": said}).items() if value}
    place = f"{name} is {said!r}, not {right[f'org.rocmatrix.{name}']!r}"
    finding = Finding(code="RM219", what="labels that say otherwise than the cell", places=(place,))
    expected = Check(name="labels", summary=SUMMARY, findings=(finding,))
    assert label_check.check(wrong, user="10001:10001", cell=cells.GFX1100) == expected


@pytest.mark.parametrize("user", ["", "root", "10001", "0:0"])
def test_another_user_fails(user):
    (finding,) = label_check.check(labels(cells.CPU), user=user, cell=cells.CPU).findings
    assert (finding.code, finding.places) == ("RM219", (f"the default user is {user!r}, not '10001:10001'",))


def test_missing_labels_and_root_fail():
    (finding,) = label_check.check({}, user="", cell=cells.CPU).findings
    assert len(finding.places) == 6
