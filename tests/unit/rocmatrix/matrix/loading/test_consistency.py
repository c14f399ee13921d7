"""A matrix that contradicts itself is refused where it does so."""

import pytest

from rocmatrix.matrix.loading.consistency import contradictions
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence, Selector
from tests.fixtures.cells import MATRIX


def changed(index, **fields):
    cells = list(MATRIX.cell_entries)
    cells[index] = cells[index].model_copy(update=fields)
    return MATRIX.model_copy(update={"cell_entries": cells})


def test_shipped_matrix_does_not_contradict_itself():
    assert list(contradictions(MATRIX)) == []


def test_base_with_a_python_that_the_release_was_not_built_for():
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


def test_recommended_cell_that_a_rule_calls_broken():
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


def test_variable_that_is_set_twice_for_one_cell():
    variable = MATRIX.environment[0]
    found = [m for _, m in contradictions(MATRIX.model_copy(update={"environment": [variable, variable]}))]
    assert any(f"{variable.name} is set 2 times" in message for message in found)


@pytest.fixture(autouse=True)
def fresh():
    """`model_copy` drops what was computed; the shipped matrix itself stays as it is."""
    yield
    assert MATRIX.cells


def rule(**fields):
    when = Selector(architectures=["gfx1030"], torch="==2.12.1", rocm="==7.2", given=fields.pop("given", None))
    evidence = Evidence(sources=["this test"], confidence="reported", date="2026-11-22")
    return Rule(when=when, reason="so", evidence=evidence, expires="2027-01-01", **fields)


def test_two_opposite_rules_on_one_combination_are_a_mistake():
    rules = [*MATRIX.rules, rule(id="x", verdict="works"), rule(id="y", verdict="broken")]
    found = dict(contradictions(MATRIX.model_copy(update={"rules": rules})))
    assert (
        found["rules", len(MATRIX.rules)] == "it states that gfx1030 with rocm7.2-torch2.12.1 works; rule y breaks it"
    )
    alone = [*MATRIX.rules, rule(id="x", verdict="works"), rule(id="y", verdict="broken", given="the moon is full")]
    assert not [path for path, _ in contradictions(MATRIX.model_copy(update={"rules": alone})) if path[0] == "rules"]


def test_override_that_helps_where_a_rule_calls_it_broken():
    gfx, entry = next((g, e) for g, e in MATRIX.architectures.items() if g == "gfx1031")
    setting = f"HSA_OVERRIDE_GFX_VERSION={entry.overrides[0].value} is set"
    against = rule(id="x", verdict="broken", given=setting).model_copy(
        update={"when": Selector(architectures=[gfx], given=setting)}
    )
    found = dict(contradictions(MATRIX.model_copy(update={"rules": [*MATRIX.rules, against]})))
    assert "rule x calls it broken there" in found["architectures", gfx, "overrides", 0]


def test_unreported_default_next_to_a_reported_cell_is_a_mistake():
    rules = [r for r in MATRIX.rules if r.id != "gfx906-mi50-torch-2.7-rocm-6.3"]
    found = dict(contradictions(MATRIX.model_copy(update={"rules": rules})))
    index = next(i for i, c in enumerate(MATRIX.cell_entries) if c.recommended and c.architecture == "gfx906")
    other = "rocm6.0-torch2.4.1-gfx906"
    assert found["cells", index, "recommended"] == f"no source reports it, and {other} is reported to work"
