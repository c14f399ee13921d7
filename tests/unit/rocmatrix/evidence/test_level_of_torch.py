"""Which torch a record ran: that of its cell, down to the release of ROCm, or the record raises no level."""

import pytest

from rocmatrix.evidence.level import of_another, why_not
from rocmatrix.evidence.record import Hardware
from rocmatrix.nightly import trust
from tests.fixtures.evidence import INPUTS, record, smoke
from tests.unit.rocmatrix.evidence.test_level import CELL, CLIMB, CPU, SIMULATION, level


def test_local_part_of_a_version_is_no_other_torch():
    assert level(*CLIMB[:2], smoke(2, versions={"torch": "2.7.1+rocm6.3"})) == "smoked"


@pytest.mark.parametrize("versions", [{}, {"python": "3.12"}, {"torch": "2.7.1 and 2.6.0"}, {"torch": ""}])
def test_suite_that_does_not_state_the_cells_torch_shows_nothing_and_fails_all_the_same(versions):
    assert "torch" in (why_not(smoke(versions=versions), CELL) or "")
    assert why_not(smoke(versions=versions, status="fail"), CELL) is None
    assert trust.tested([record("prove"), smoke(1, versions=versions)], INPUTS, cell=CELL) is None


def test_training_that_states_no_torch_has_that_of_the_suite_in_its_image():
    assert why_not(record("train", versions={}), CELL) is None


@pytest.mark.parametrize(
    ("torch", "counts"),
    [
        ("2.7.1", True), ("2.7.1+rocm6.3", True), ("2.7.1+rocm6.3.4.git1ded221d", True),
        ("2.7.1+rocm6.2.4", False), ("2.7.1+rocm6.30", False), ("2.7.1+cpu", False), ("2.7.1+cu128", False),
    ],
)  # fmt: skip
def test_smoke_of_another_build_of_the_same_torch_raises_nothing(torch, counts):
    assert level(*CLIMB[:2], smoke(2, versions={"torch": torch})) == ("smoked" if counts else "proven")


def test_torch_of_a_simulated_image_is_compared_in_the_real_status_alone():
    other = {"versions": {"torch": "2.12.1"}}
    assert why_not(smoke(**SIMULATION, **other), CELL, simulated=True) is None
    assert of_another(smoke(**other), CELL) == "it ran torch 2.12.1, and the cell has 2.7.1 of ROCm 6.3"
    assert of_another(smoke(**other), CELL, simulated=True) is None


def test_torch_that_is_not_stated_is_reported_so():
    assert why_not(smoke(versions={}), CELL) == "it ran torch (not stated), and the cell has 2.7.1 of ROCm 6.3"


@pytest.mark.parametrize(("torch", "counts"), [("2.7.1", True), ("2.7.1+cpu", True), ("2.7.1+rocm6.3", False)])
def test_torch_of_a_cpu_cell_is_a_build_for_cpus(torch, counts):
    ran = smoke(cell=CPU.name, versions={"torch": torch}, hardware=Hardware(device="cpu"))
    assert why_not(ran, CPU) == (None if counts else f"it ran torch {torch}, and the cell has 2.7.1 for a CPU")
