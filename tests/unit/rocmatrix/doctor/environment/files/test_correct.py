"""Where a correction is made, and where none is."""

import pytest

from rocmatrix.doctor.environment.files import correct
from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import Fix
from rocmatrix.runtime.errors import RocmatrixError


def test_correction_without_a_safe_fix_changes_nothing(tmp_path):
    path = tmp_path / "a.sh"
    path.write_text("docker run x\r\n", newline="")
    found = correct.correction(path, ())
    assert (found.difference, found.before) == ("", "docker run x\r\n")


@pytest.mark.parametrize("others", [", amd.com/gpu: 1", ", 'amd.com/gpu': 1"])
def test_result_with_a_key_twice_is_refused(tmp_path, others):
    path = tmp_path / "a.yaml"
    path.write_text(f"limits: {{nvidia.com/gpu: 1{others}}}\n")
    fix = Fix(where=f"{path}:1", before="nvidia.com/gpu", after="amd.com/gpu")
    finding = LintFinding(
        rule="x", subject="", where=fix.where, what="", kind="harmful", severity="error", truth="", instead="",
        source="", fix=fix,
    )  # fmt: skip
    with pytest.raises(RocmatrixError, match=r"the result has a key twice: amd\.com/gpu"):
        correct.write(correct.correction(path, [finding]), lambda _: ())
    assert "nvidia.com/gpu" in path.read_text()


def finding(path, fix):
    return LintFinding(
        rule="x", subject="", where=fix.where, what="", kind="harmful", severity="error", truth="", instead="",
        source="", fix=fix,
    )  # fmt: skip


def test_correction_keeps_every_other_byte(tmp_path):
    path = tmp_path / "a.sh"
    text = "# a\x0cform feed\r\n\r\n--device=/dri  \t# \u2028 b\r\nlast"
    path.write_text(text, encoding="utf-8", newline="")
    fix = Fix(where=f"{path}:3", before="/dri", after="/dev/dri")
    assert correct.correction(path, [finding(path, fix)]).after == text.replace("=/dri", "=/dev/dri")


def test_file_that_is_not_utf_8_is_corrected_by_hand_alone(tmp_path):
    path = tmp_path / "a.sh"
    path.write_bytes(b"# caf\xe9\n--device=/dri\n")
    assert correct.correction(path, ()).difference == ""
    fix = Fix(where=f"{path}:2", before="/dri", after="/dev/dri")
    with pytest.raises(RocmatrixError, match="it is not UTF-8"):
        correct.correction(path, [finding(path, fix)])
