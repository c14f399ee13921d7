"""What is read of a pyproject file, and of a conda environment."""

import pytest

from rocmatrix.doctor.environment.files import projects
from rocmatrix.runtime.errors import RocmatrixError


def test_pyproject_yields_a_command_for_each_extra(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project.optional-dependencies]\nrocm = ["torch"]\n')
    assert [subject.commands[0].text.split() for subject in projects.of_pyproject(path)][1] == [
        "pip",
        "install",
        "torch",
    ]


def test_pyproject_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\ndependencies = ["torch"]\n', encoding="utf-8-sig")
    assert projects.of_pyproject(path)[0].commands[0].text.split() == ["pip", "install", "torch"]


@pytest.mark.parametrize("text", ["x = [", "x = " + "[" * 3000 + "]" * 3000])
def test_pyproject_that_is_no_toml_is_refused_with_advice_for_toml(tmp_path, text):
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    with pytest.raises(RocmatrixError) as refused:
        projects.of_pyproject(path)
    assert (refused.value.code, "TOML" in refused.value.next) == ("RM311", True)


@pytest.mark.parametrize(
    ("name", "package", "rules"),
    [
        ("environment.yml", "pytorch-cuda=12.1", ["nvidia-alone"]),
        ("environment.yml", "nvidia::cuda-toolkit", ["nvidia-alone"]),
        ("environment.yml", "numpy", []),
        ("environment-cuda.yml", "pytorch-cuda=12.1", []),
        ("environment-rocm.yml", "pytorch-cuda=12.1", ["nvidia-alone"]),
    ],
)
def test_conda_for_nvidia_alone_is_a_note(tmp_path, name, package, rules):
    path = tmp_path / name
    path.write_text(f"dependencies:\n- python=3.10\n- {package}\n")
    notes = projects.of_conda(path)[0].notes
    assert [(note.rule, note.severity, note.where) for note in notes] == [(rule, "note", f"{path}:3") for rule in rules]


@pytest.mark.parametrize(("version", "rules"), [("2.5.1+rocm", ["rocm-without-version"]), ("2.5.1+rocm6.2", [])])
def test_conda_with_a_local_version_without_number_is_reported(tmp_path, version, rules):
    path = tmp_path / "environment.yml"
    path.write_text(f"dependencies:\n- pip:\n  - torch=={version}\n")
    notes = projects.of_conda(path)[0].notes
    assert [(note.rule, note.where) for note in notes] == [(rule, f"{path}:3") for rule in rules]
