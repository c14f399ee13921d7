"""Rules on variables are read strictly."""

import re
from pathlib import Path

import pytest

from rocmatrix.doctor.environment import lint, rules
from rocmatrix.doctor.environment.lint_input import Assignment, Subject
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import GFX1100, MATRIX

ROOT = Path(__file__).resolve().parents[5]
RULES = rules.load(ROOT)


def test_mistake_in_the_rules_is_reported_with_its_line(tmp_path):
    text = (ROOT / rules.ENVIRONMENT_FILE).read_text()
    (tmp_path / "matrix").mkdir()
    broken = text.replace("severity: error", "severity: fatal", 1).replace('value: "(?i)^hccl$"', 'value: "(?i^hccl$"')
    (tmp_path / rules.ENVIRONMENT_FILE).write_text(broken.replace("instead: nothing\n", "insted: nothing\n"))
    with pytest.raises(RocmatrixError) as caught:
        rules.load(tmp_path)
    message = str(caught.value)
    assert caught.value.code == "RM001"
    assert f"matrix/environment.yaml:{_line(broken, 'severity: fatal')}: " in message
    assert "is no pattern" in message
    assert "unknown key 'insted'; did you mean instead" in message


def test_rule_needs_one_subject_and_an_id_of_its_own(tmp_path):
    text = (ROOT / rules.ENVIRONMENT_FILE).read_text()
    (tmp_path / "matrix").mkdir()
    (tmp_path / rules.ENVIRONMENT_FILE).write_text(re.sub(r"  names: \[HIP_DISABLE_IPC\]\n", "", text))
    with pytest.raises(RocmatrixError, match="either names or a command"):
        rules.load(tmp_path)
    (tmp_path / rules.ENVIRONMENT_FILE).write_text(text.replace("id: sdma-off", "id: interrupts-off"))
    with pytest.raises(RocmatrixError, match="'interrupts-off' is given a second time"):
        rules.load(tmp_path)


def test_architectures_of_rules_are_known_to_the_matrix():
    named = {name for rule in RULES for name in rule.when.architectures or ()}
    assert named <= set(MATRIX.architectures)
    assert matrix_file.load(ROOT).cell(GFX1100.name).name == GFX1100.name


def _line(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_mistyped_variable_is_answered_with_the_right_name():
    rows = (Assignment(name="HSA_OVERRIDE_GFX_VERSON", value="10.3.0", where="here:1"),)
    [finding] = lint.lint([Subject(name="test", variables=rows)], RULES)
    assert finding.instead == "HSA_OVERRIDE_GFX_VERSION"
