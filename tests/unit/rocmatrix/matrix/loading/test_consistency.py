"""A matrix that contradicts itself is refused where it does so."""

import pytest

from rocmatrix.matrix.loading.consistency import REPORTED_TO_US, contradictions
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
    assert "and broken by rule x" in found["architectures", gfx, "overrides", 0]


def test_unreported_default_next_to_a_reported_cell_is_a_mistake():
    rules = [r for r in MATRIX.rules if r.id != "gfx906-mi50-torch-2.7-rocm-6.3"]
    found = dict(contradictions(MATRIX.model_copy(update={"rules": rules})))
    index = next(i for i, c in enumerate(MATRIX.cell_entries) if c.recommended and c.architecture == "gfx906")
    other = "rocm6.0-torch2.4.1-gfx906"
    assert found["cells", index, "recommended"] == f"no source reports it, and {other} is reported to work"


def judged_on(source, *, verdict="broken", given=None, rule_id="x"):
    one = rule(id=rule_id, verdict=verdict, given=given)
    evidence = Evidence(sources=["ROCm/ROCm#1", source], confidence="reported", date="2026-11-22")
    rules = [*MATRIX.rules, one.model_copy(update={"evidence": evidence})]
    return [m for p, m in contradictions(MATRIX.model_copy(update={"rules": rules})) if p == ("rules", len(rules) - 1)]


@pytest.mark.parametrize("given", [None, "the moon is full"])
@pytest.mark.parametrize("source", ["a public how-to for an MI50", "Triton documentation", "general knowledge"])
def test_verdict_on_a_document_that_cannot_be_opened_is_a_mistake(source, given):
    assert any(f"rests on '{source}'" in message for message in judged_on(source, given=given))
    assert judged_on(source, verdict="untested", given=given) == []


def test_verdict_on_a_first_hand_report_alone_is_a_mistake_but_for_the_rules_named():
    source = "a first-hand report by an owner (given to this project; not public)"
    assert any("REPORTED_TO_US" in message for message in judged_on(source))
    assert judged_on(source, given="the moon is full") == []  # a caution judges no combination
    assert not any("REPORTED_TO_US" in m for m in judged_on(source, rule_id=min(REPORTED_TO_US)))


def test_companion_judged_on_a_document_that_cannot_be_opened_is_a_mistake():
    first = MATRIX.companions[0]
    evidence = Evidence(sources=["community notes"], confidence="reported", date="2026-11-22")
    bent = first.model_copy(update={"rules": [first.rules[0].model_copy(update={"evidence": evidence})]})
    found = dict(contradictions(MATRIX.model_copy(update={"companions": [bent, *MATRIX.companions[1:]]})))
    assert "rests on 'community notes'" in found["companions", 0, "rules", 0]


def test_rules_reported_to_this_project_alone_are_those_named():
    first_hand = {r.id for r in MATRIX.rules if r.decides and any("first-hand" in s for s in r.evidence.sources)}
    assert first_hand == REPORTED_TO_US
