"""Where a correction is made, and where none is."""

from rocmatrix.doctor.environment.files import correct


def test_correction_without_a_safe_fix_changes_nothing(tmp_path):
    path = tmp_path / "a.sh"
    path.write_text("docker run x\r\n", newline="")
    found = correct.correction(path, ())
    assert (found.difference, found.before) == ("", "docker run x\r\n")
