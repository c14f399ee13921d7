"""Every kind of mistake in the matrix is an RM001 that names its file, its line and the nearest right name."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.loading import strict_yaml
from rocmatrix.runtime.errors import RocmatrixError
from tests.left_out import WHOLE

ROOT = Path(__file__).resolve().parents[5]
FILES = {"": matrix_file.MAIN_FILE, **matrix_file.PART_FILES}
TEXTS = {file: (ROOT / file).read_text() for file in FILES.values()}
DOCUMENTS = {file: strict_yaml.parse(text, file=file) for file, text in TEXTS.items()}
# ROCMATRIX_MUTATIONS=10000 is the full run; a few hundred keep the suite quick.
MUTATIONS = int(os.environ.get("ROCMATRIX_MUTATIONS", "300" if WHOLE else "100"))


def problems(file, text):
    """Return the lines that validation complains with when `file` reads `text`, [] when it accepts."""
    documents = DOCUMENTS | {file: strict_yaml.parse(text, file=file)}
    parts = {part: documents[name] for part, name in matrix_file.PART_FILES.items()}
    try:
        matrix = matrix_file.validate(documents[matrix_file.MAIN_FILE], parts)
    except RocmatrixError as error:
        assert error.code == "RM001"
        return error.what.splitlines()
    assert matrix.cells
    return []


def line_of(text, needle):
    return text[: text.index(needle)].count("\n") + 1


def replaced(file, old, new):
    assert old in TEXTS[file]
    return TEXTS[file].replace(old, new, 1)


def test_shipped_matrix_is_valid():
    matrix = matrix_file.load(ROOT)
    assert {cell.architecture for cell in matrix.cells if cell.recommended} >= {
        "gfx906", "gfx1030", "gfx1100", "gfx1101", "gfx1151", "gfx1201", "gfx90a", "gfx942", "gfx950",
    }  # fmt: skip
    assert {"rocm6.0-torch2.4.1-gfx906", "rocm6.3-torch2.7.1-gfx1100"} <= {cell.name for cell in matrix.cells}


def test_statements_have_a_source_with_text():
    matrix = matrix_file.load(ROOT)
    written = [*matrix.rules, *matrix.environment, *matrix.cell_entries, *matrix.series, *matrix.architectures.values()]
    written += [statement for library in matrix.libraries for statement in library[1]]
    written += [claim for rule in matrix.rules if (claim := rule.claim)]
    for row in (*written, *matrix.derived_rules):
        assert row.evidence.sources
        assert all(len(source.strip()) > 3 for source in row.evidence.sources)


@pytest.mark.parametrize("sources", ["[]", '[""]', '["  "]', "null"])
def test_rule_without_a_source_fails_with_its_line(sources):
    file = "matrix/rules.yaml"
    old = "sources: [a first-hand report by an MI50 owner (given to this project; not public)]"
    text = replaced(file, old, f"sources: {sources}")
    found = problems(file, text)
    assert any(line.startswith(f"{file}:{line_of(text, f'sources: {sources}')}: rules.0.evidence") for line in found), (
        found
    )


def test_rule_with_no_evidence_at_all_fails_with_its_line():
    file = "matrix/rules.yaml"
    rule = "- id: bare\n  when: {}\n  verdict: works\n  reason: because\n"
    found = problems(file, TEXTS[file] + rule)
    assert {line.split(": ", 1)[1] for line in found} == {
        f"rules.{len(DOCUMENTS[file].data)}.{field}: Field required" for field in ("evidence", "expires")
    }
    assert all(line.startswith(f"{file}:{line_of(TEXTS[file] + rule, '- id: bare')}:") for line in found)


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("matrix.yaml", '    python: "3.12"', "    python: 3.10", 'write "3.10"'),
        ("matrix.yaml", "    recommended: true", "    recomended: true", "did you mean recommended"),
        ("matrix.yaml", "    base: ubuntu-24.04", "    base: ubuntu-24.4", "did you mean ubuntu-24.04"),
        ("matrix.yaml", "    architecture: gfx1101", "    architecture: gfx1104", "gfx1100"),
        ("matrix.yaml", "    architecture: gfx1101", "    architecture: gfx1101x", "not a gfx name"),
        ("matrix.yaml", "  - release: rocm7.2-torch2.12.1", "  - release: rocm7.2-torch2.12.2", "did you mean"),
        ("matrix.yaml", "confidence: reported", "confidence: certain", "Input should be"),
        ("matrix.yaml", 'date: "2026-11-21"', 'date: "2026-11-31"', "not a date"),
        ("matrix.yaml", "schema: 1\n", "schema: 1\nrules: []\n", "rules stand in matrix/rules.yaml"),
        ("matrix/releases.yaml", '  rocm: ["6.1", "6.2"]', "  rocm: [6.1, 6.2]", 'write "6.1"'),
        ("matrix/releases.yaml", '    "2.7.1": {', '    "2.7.x": {', "should match pattern"),
        ("matrix/releases.yaml", "    layout: bundled", "    layout: thick", "Input should be"),
        ("matrix/releases.yaml", "[gfx908, gfx90a, gfx942", "[gfx909, gfx90a, gfx942", "did you mean"),
        ("matrix/architectures.yaml", "  family: Vega 20\n", "  familly: Vega 20\n", "did you mean family"),
        ("matrix/architectures.yaml", '    - value: "9.0.6"', '    - value: "9.6"', "should match pattern"),
        ("matrix/libraries.yaml", "supported: [gfx90a, gfx942]", "supported: [gfx90a, gfx943]", "gfx942"),
        ("matrix/libraries.yaml", "rccl:\n", "rcl:\n", "did you mean rccl"),
        ("matrix/rules.yaml", 'torch: "==2.5.1"', 'torch: "=2.5.1"', "not a version range"),
        ("matrix/rules.yaml", "architectures: [gfx906]", "architectures: [gfx905]", "did you mean"),
        ("matrix/rules.yaml", "- id: gfx906-mi50-torch-2.5.1", "- id: gfx906-rocblas-from-6.4", "a second time"),
        ("matrix/locks.yaml", "  - tqdm-4.70.1-py3-none-any.whl", "  - tqdm-4.70.2-py3-none-any.whl", "mean tqdm"),
        ("matrix/wheels.yaml", "- index: python", "- index: pypi", "Input should be"),
        ("matrix/wheels.yaml", "    tqdm-4.70.1-py3-none-any.whl", "    tqdm-4.70.1.whl", "should match pattern"),
    ],
)  # fmt: skip
def test_mistake_names_its_file_its_line_and_the_next_step(file, old, new, expected):
    text = replaced(file, old, new)
    found = [line for line in problems(file, text) if expected in line]
    assert found, problems(file, text)
    line = line_of(text, new.splitlines()[-1])
    assert any(row.startswith(f"{file}:{line}:") for row in found), found


def test_key_given_twice_is_refused():
    file = "matrix/architectures.yaml"
    text = replaced(file, "  family: Vega 20\n", "  family: Vega 20\n  family: Vega 21\n")
    expected = f"{file}:{line_of(text, 'Vega 21')}: the key 'family' stands here a second time"
    assert problems(file, text) == [expected]


def test_release_given_twice_is_refused_where_it_stands_the_second_time():
    file = "matrix/releases.yaml"
    text = replaced(file, '    "2.7.1": {', '    "2.8.0": {')
    second = text[: text.rindex('    "2.8.0": {')].count("\n") + 1
    assert f"{file}:{second}: 'rocm6.3-torch2.8.0' is given a second time" in problems(file, text)


def test_two_cells_of_one_name_are_refused():
    text = replaced("matrix.yaml", "    architecture: gfx1101", "    architecture: gfx1100")
    assert any("'rocm7.2-torch2.12.1-gfx1100' is given a second time" in line for line in problems("matrix.yaml", text))


@pytest.mark.parametrize("file", FILES.values())
@pytest.mark.parametrize(
    "text", ["", "- a\n- b", "a: &x 1\nb: *x", "a: !!python/object:os.system ls", "a: [", "\t", "\0", "[" * 5000, "~"]
)
def test_file_that_is_no_yaml_is_a_named_problem(file, text):
    found = problems(file, text)
    assert found or (file == "matrix/locks.yaml" and text == "")
    assert all(re.match(rf"{re.escape(file)}:\d+: ", line) for line in found), found


def test_unreadable_file_is_rm002(tmp_path):
    with pytest.raises(RocmatrixError) as caught:
        matrix_file.load(tmp_path)
    assert caught.value.code == "RM002"
    assert "matrix.yaml" in caught.value.what


def test_missing_part_is_rm002_with_its_name(tmp_path):
    (tmp_path / "matrix.yaml").write_text(TEXTS["matrix.yaml"])
    with pytest.raises(RocmatrixError, match=r"matrix/architectures\.yaml"):
        matrix_file.load(tmp_path)


WORDS = st.sampled_from(
    ["null", "[]", "{}", "~", "3.10", "true", '""', "2026-11-21", "gfx9", "*x", "&x 1", "- ", "? a", "|", ">", "'", "#"]
)  # fmt: skip


def mutated(data, lines):
    """Change a few lines, in the ways in which people break files."""
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        line = lines[index]
        action = data.draw(st.sampled_from(["drop", "repeat", "swap", "text", "value", "indent", "cut"]))
        if action == "drop" and len(lines) > 1:
            del lines[index]
        elif action == "repeat":
            lines.insert(index, line)
        elif action == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[index], lines[other] = lines[other], line
        elif action == "text":
            lines[index] = data.draw(st.text(max_size=30)) + "\n"
        elif action == "value":
            lines[index] = line.split(":")[0] + ": " + data.draw(WORDS) + "\n"
        elif action == "indent":
            lines[index] = " " * data.draw(st.integers(0, 8)) + line.lstrip()
        else:
            lines[index] = line[: data.draw(st.integers(0, len(line)))] + "\n"
    return "".join(lines)


@settings(max_examples=MUTATIONS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_matrix_is_valid_or_names_a_line(data):
    file = data.draw(st.sampled_from(sorted(TEXTS)))
    text = mutated(data, TEXTS[file].splitlines(keepends=True))
    assert all(re.match(r"matrix\S*\.yaml:\d+: \S", line) for line in problems(file, text))
