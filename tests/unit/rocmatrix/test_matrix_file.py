"""Every kind of mistake in matrix.yaml is an RM001 that names its line and the nearest right name."""

import copy
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmatrix import matrix_file, yaml_lines
from rocmatrix.errors import RocmatrixError

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "matrix.yaml").read_text()
PARTS = {key: yaml_lines.read(ROOT / file) for key, file in matrix_file.PART_FILES.items()}


def problems(text):
    """Return the lines that validation complains with, [] when it accepts."""
    try:
        matrix_file.validate(yaml_lines.parse(text, file="matrix.yaml"), copy.deepcopy(PARTS))
    except RocmatrixError as error:
        assert error.code == "RM001"
        return error.what.splitlines()
    return []


def line_of(text, needle):
    return text[: text.index(needle)].count("\n") + 1


def replaced(old, new, text=TEXT):
    assert old in text
    return text.replace(old, new, 1)


def test_the_shipped_matrix_is_valid():
    matrix = matrix_file.load(ROOT)
    assert len(matrix.cells) == 12
    assert {cell.architecture for cell in matrix.cells if cell.recommended} >= {
        "gfx906", "gfx1030", "gfx1100", "gfx1101", "gfx1151", "gfx1201", "gfx90a", "gfx942", "gfx950",
    }  # fmt: skip
    assert {"rocm6.0-torch2.4.1-gfx906", "rocm6.3-torch2.7.1-gfx1100"} <= {cell.name for cell in matrix.cells}


def test_every_rule_variable_and_cell_has_a_source():
    matrix = matrix_file.load(ROOT)
    for row in (*matrix.rules, *matrix.environment, *matrix.cell_entries, *matrix.releases):
        assert row.evidence.sources
        assert all(source.strip() for source in row.evidence.sources)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('    python: "3.12"', "    python: 3.10", 'write "3.10"'),
        ('    rocm: "7.2"', "    rocm: 7.20", 'write "7.20"'),
        ("    recommended: true", "    recomended: true", "did you mean recommended"),
        ("    base: ubuntu-24.04", "    base: ubuntu-24.4", "did you mean ubuntu-24.04"),
        ("    architecture: gfx1101", "    architecture: gfx1110", "gfx1100"),
        ("    architecture: gfx1101", "    architecture: gfx1101x", "not a gfx name"),
        ("  - release: rocm7.2-torch2.12.1", "  - release: rocm7.2-torch2.12.2", "did you mean rocm7.2-torch2.12.1"),
        ("confidence: reported", "confidence: certain", "Input should be"),
        ('rocm: ">=6.4"}', 'rocm: "=>6.4"}', "not a version range"),
    ],
)
def test_a_mistake_names_its_line_and_the_way_out(old, new, expected):
    text = replaced(old, new)
    found = problems(text)
    assert any(expected in line for line in found), found
    assert any(line.startswith(f"matrix.yaml:{line_of(text, new)}:") for line in found), found


def test_a_key_given_twice_is_refused():
    text = replaced("    family: Vega 20\n", "    family: Vega 20\n    family: Vega 21\n")
    assert problems(text) == [f"matrix.yaml:{line_of(text, 'Vega 21')}: the key 'family' stands here a second time"]


def test_two_cells_of_one_name_are_refused():
    text = replaced("    architecture: gfx1101", "    architecture: gfx1100")
    assert any("'rocm7.2-torch2.12.1-gfx1100' is given a second time" in line for line in problems(text))


NO_MATRIX = ["", "- a\n- b", "a: &x 1\nb: *x", "a: !!python/object:os.system ls", "a: [", "\t", "\0"]


@pytest.mark.parametrize("text", NO_MATRIX)
def test_no_yaml_at_all_is_a_named_problem(text):
    assert all(re.match(r"matrix.yaml:\d+: ", line) for line in problems(text))
    assert problems(text)


def test_deep_nesting_ends_in_words():
    assert problems("[" * 5000)


def test_an_unreadable_file_is_rm002(tmp_path):
    with pytest.raises(RocmatrixError) as caught:
        matrix_file.load(tmp_path)
    assert caught.value.code == "RM002"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_matrix_is_valid_or_names_a_line(data):
    lines = TEXT.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        action = data.draw(st.sampled_from(["drop", "repeat", "swap", "text"]))
        if action == "drop":
            del lines[index]
        elif action == "repeat":
            lines.insert(index, lines[index])
        elif action == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[index], lines[other] = lines[other], lines[index]
        else:
            lines[index] = data.draw(st.text(max_size=30)) + "\n"
    assert all(re.match(r"\S+:\d+: \S", line) for line in problems("".join(lines)))
