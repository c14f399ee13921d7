"""What a file or a shell is judged on."""

from pathlib import Path

from rocmatrix.doctor.environment import lint, lint_input, rules
from rocmatrix.doctor.environment.lint_input import Assignment, Subject
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import machines
from tests.fixtures.cells import GFX906, GFX1151

ROOT = Path(__file__).resolve().parents[5]
RULES = rules.load(ROOT)


def test_unknown_fact_of_a_run_makes_a_finding_a_note_with_its_condition():
    variables = (Assignment(name="HSA_XNACK", value="1", where="here"),)
    (finding,) = lint.lint([Subject(name="x", variables=variables)], RULES)
    assert finding.severity == "note"
    assert finding.condition.startswith("on gfx1030, ")
    assert "reported" in finding.source or "verified in source" in finding.source


def test_shell_is_judged_on_the_cards_of_the_host_or_as_the_cell_it_will_run(tmp_path):
    hardware = read_hardware(machines.mi50(tmp_path))
    shell = {"HSA_OVERRIDE_GFX_VERSION": "9.0.6", "TORCH_BLAS_PREFER_HIPBLASLT": "0"}
    rule = {f.rule: f for f in lint.lint([lint_input.of_shell(shell, hardware)], RULES)}
    assert (rule["override-native"].severity, rule["hipblaslt-preference-ignored"].condition is None) == (
        "warning",
        False,
    )
    sure = {f.rule for f in lint.lint([lint_input.of_shell(shell, hardware, GFX906)], RULES)}
    assert sure == {"override-native", "hipblaslt-preference-ignored"}
    assert {f.rule for f in lint.lint([lint_input.of_shell(shell, hardware, GFX1151)], RULES)} == {"override-foreign"}
