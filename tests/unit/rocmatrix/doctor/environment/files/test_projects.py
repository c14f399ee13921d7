"""What is read of a pyproject file."""

from rocmatrix.doctor.environment.files import projects


def test_pyproject_yields_a_command_for_each_extra(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project.optional-dependencies]\nrocm = ["torch"]\n')
    assert [subject.commands[0].text.split() for subject in projects.of_pyproject(path)][1] == [
        "pip",
        "install",
        "torch",
    ]
