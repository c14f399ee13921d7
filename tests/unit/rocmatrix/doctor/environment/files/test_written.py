"""Files as people write them: the linter reports the mistake of each and nothing else; corrections are safe."""

from pathlib import Path

import pytest
import yaml

from rocmatrix.doctor.environment import lint, placement, rules, version_pairs
from rocmatrix.doctor.environment.files import correct, recognise
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[6]
RULES = rules.load(ROOT)
WRITTEN = yaml.safe_load((Path(__file__).parent / "written.yaml").read_text(encoding="utf-8"))
CORRECTED = {
    "kfd-not-given", "device-path", "ollama-without-rocm", "k8s-nvidia-resource", "folder-as-index",
    "device-nearly-right", "build-backend-absent", "triton-of-another-name",
}  # fmt: skip


def linted(path):
    subjects = recognise.subjects(path, shell={}, matrix=MATRIX)
    found = lint.lint(subjects, RULES)
    return (*found, *version_pairs.unbuilt(subjects, MATRIX), *placement.misplaced(subjects, MATRIX))


def put(folder, row):
    path = folder / row["file"]
    path.write_text(row["text"], encoding="utf-8")
    return path


def test_files_are_sixty_or_more_of_every_kind():
    assert len(WRITTEN) >= 60
    assert len({row["name"] for row in WRITTEN}) == len(WRITTEN)
    assert sum(not row["finds"] for row in WRITTEN) >= 15


@pytest.mark.parametrize("row", WRITTEN, ids=[row["name"] for row in WRITTEN])
def test_mistake_of_a_file_is_reported_and_nothing_else(tmp_path, row):
    found = linted(put(tmp_path, row))
    assert sorted({one.rule for one in found if one.severity != "note" or one.rule in row["finds"]}) == row["finds"]


@pytest.mark.parametrize(
    "row", [row for row in WRITTEN if CORRECTED & set(row["finds"])], ids=lambda row: row["name"]
)  # fmt: skip
def test_safe_correction_leaves_no_such_finding_and_keeps_a_backup(tmp_path, row):
    path = put(tmp_path, row)
    path.chmod(0o755)
    found = correct.correction(path, linted(path))
    if "pinned" in row["name"]:
        assert not found.difference
        return
    if row["name"] == "workflow whose container has dri alone":
        assert "+      options: --device=/dev/kfd --device=/dev/dri" in found.difference
    backup = correct.write(found, linted)
    assert not CORRECTED & {one.rule for one in linted(path)}
    assert backup.read_text() == row["text"]
    assert path.stat().st_mode & 0o777 == 0o755
    changed = [line for line in found.difference.splitlines()[2:] if line[0] in "+-"]
    assert 1 <= len(changed) <= 2


def test_index_next_to_pypi_replaces_it_where_torch_is_installed_alone(tmp_path):
    row = next(row for row in WRITTEN if row["name"] == "script that takes torch alone from two indexes")
    path = put(tmp_path, row)
    assert " --index-url " in correct.correction(path, linted(path)).after
    path.write_text(row["text"].replace("torchvision", "torchvision flask"))
    assert not correct.correction(path, linted(path)).difference
    path.write_text(row["text"].replace("rocm6.4", "rocm5.2"))
    assert not correct.correction(path, linted(path)).difference
    listed = tmp_path / "requirements.txt"
    listed.write_text("--extra-index-url https://download.pytorch.org/whl/rocm6.4\ntorch\n")
    found = correct.correction(listed, linted(listed))
    assert not found.difference
    assert not found.skipped


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("row", WRITTEN, ids=[row["name"] for row in WRITTEN])
def test_second_correction_changes_nothing(tmp_path, row, ending):
    path = tmp_path / row["file"]
    path.write_text(row["text"].replace("/dev/dri:/dev/dri", "/dri:/dri"), encoding="utf-8", newline=ending)
    found = correct.correction(path, linted(path))
    if found.difference:
        correct.write(found, linted)
    assert not correct.correction(path, linted(path)).difference


@pytest.fixture
def wrong(tmp_path):
    return put(tmp_path, next(row for row in WRITTEN if row["name"] == "docker run with dri alone"))


def test_correction_is_refused_where_it_is_not_safe(wrong):
    found = correct.correction(wrong, linted(wrong))
    wrong.write_text(found.before + "# a line more\n")
    with pytest.raises(RocmatrixError, match="it changed while it was read"):
        correct.write(found, linted)
    wrong.write_text(found.before)
    link = wrong.with_name("link.sh")
    link.symlink_to(wrong)
    with pytest.raises(RocmatrixError, match="it is a link"):
        correct.write(correct.correction(link, linted(link)), linted)
    backup = wrong.with_name(wrong.name + correct.BACKUP)
    backup.write_text("kept")
    with pytest.raises(RocmatrixError, match="a backup is there"):
        correct.write(found, linted)
    assert (backup.read_text(), wrong.read_text()) == ("kept", found.before)


def test_result_with_other_findings_is_refused(wrong):
    found = correct.correction(wrong, linted(wrong))
    with pytest.raises(RocmatrixError, match="RM685"):
        correct.write(found, lambda path: linted(wrong))
    assert wrong.read_text() == found.before
    assert not wrong.with_name(wrong.name + correct.BACKUP).exists()


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [("a.yaml", "x: [1\n", "RM311"), ("a.yaml", "colour: red\n", "RM311"), ("a.yaml", "", "RM311"),
     ("a.bin", "x", "RM311"), ("pyproject.toml", "x = [", "RM311"), ("pod.yaml", "{{- if .x }}\nkind: Pod\n", "RM311"),
     ("environment.yml", "dependencies: 7\n", None), ("ci.yml", "jobs: {a: 7, b: {steps: 3}}\n", None),
     ("pod.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [7, {image: [1]}]}\n", None),
     ("pyproject.toml", "[tool.uv]\nsources = 3\nindex = 4\n[project]\ndependencies = 4\n", None)],
)  # fmt: skip
def test_file_of_another_form_is_refused_or_read_without_findings(tmp_path, name, text, code):
    path = tmp_path / name
    path.write_text(text)
    if code is None:
        assert linted(path) == ()
        return
    with pytest.raises(RocmatrixError, match=code):
        linted(path)


@pytest.mark.parametrize(
    ("name", "rules"), [("constraints.txt", set()), ("requirements.txt", {"local-version-without-index"})]
)
def test_local_version_without_an_index_is_a_note_in_a_list_and_none_in_constraints(tmp_path, name, rules):
    path = put(tmp_path, {"file": name, "text": "torch==2.5.1+rocm6.2\n"})
    assert {(one.rule, one.severity) for one in linted(path)} & {(rule, "note") for rule in rules} == {
        (one.rule, one.severity) for one in linted(path) if one.rule == "local-version-without-index"
    }
