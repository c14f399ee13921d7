"""What is read of a conda environment."""

import pytest

from rocmatrix.doctor.environment.files import projects


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
