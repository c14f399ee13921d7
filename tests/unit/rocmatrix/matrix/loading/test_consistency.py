"""A matrix that contradicts itself is refused where it does so."""

import pytest

from rocmatrix.matrix.loading.consistency import contradictions
from tests.fixtures.cells import MATRIX


def changed(index, **fields):
    cells = list(MATRIX.cell_entries)
    cells[index] = cells[index].model_copy(update=fields)
    return MATRIX.model_copy(update={"cell_entries": cells})


def test_the_shipped_matrix_does_not_contradict_itself():
    assert list(contradictions(MATRIX)) == []


def test_a_base_with_a_python_that_the_release_was_not_built_for():
    index = next(i for i, c in enumerate(MATRIX.cells) if c.release.rocm)
    base = MATRIX.cell_entries[index].base
    bases = MATRIX.bases | {base: MATRIX.bases[base].model_copy(update={"python": "3.7"})}
    found = dict(contradictions(MATRIX.model_copy(update={"bases": bases})))
    assert "its base brings Python 3.7" in found["cells", index]


def test_two_recommended_cells_of_one_architecture():
    twice = [i for i, c in enumerate(MATRIX.cells) if c.architecture == "gfx1100"]
    other = next(i for i in twice if not MATRIX.cell_entries[i].recommended)
    found = dict(contradictions(changed(other, recommended=True)))
    assert any("is the recommended cell of gfx1100 already" in message for message in found.values())


def test_a_recommended_cell_that_a_rule_calls_broken():
    rule = next(r for r in MATRIX.rules if r.verdict == "broken" and r.decides)
    cell = next(c for c in MATRIX.cells if c.recommended and c.architecture)
    against = rule.model_copy(
        update={
            "when": rule.when.model_copy(
                update={"architectures": [cell.architecture], "torch": None, "rocm": None, "package": None}
            )
        }
    )
    found = [m for _, m in contradictions(MATRIX.model_copy(update={"rules": [against]}))]
    assert any(f"rule {rule.id} calls it broken" in message for message in found)


def test_a_variable_that_is_set_twice_for_one_cell():
    variable = MATRIX.environment[0]
    found = [m for _, m in contradictions(MATRIX.model_copy(update={"environment": [variable, variable]}))]
    assert any(f"{variable.name} is set 2 times" in message for message in found)


@pytest.fixture(autouse=True)
def fresh():
    """`model_copy` drops what was computed; the shipped matrix itself stays as it is."""
    yield
    assert MATRIX.cells
