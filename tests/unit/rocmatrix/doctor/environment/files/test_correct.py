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
