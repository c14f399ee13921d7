"""Definition files of Apptainer."""

import pytest

from rocmatrix.doctor.environment.files import definition, recognise
from rocmatrix.doctor.environment.placement import misplaced
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

TEXT = """Bootstrap: docker
From: rocm/pytorch:latest
Stage: build

%environment
    export HSA_OVERRIDE_GFX_VERSION=10.3.0

%post
    apt-get update
    pip install \\
        torch==2.9.1
%runscript
    pip install vllm
"""


def put(folder, text, name="a.def"):
    path = folder / name
    path.write_text(text)
    return path


def test_definition_is_read_as_a_stage_with_its_image_variables_and_commands(tmp_path):
    path = put(tmp_path, TEXT)
    (one,) = definition.of_definition(path)
    assert (one.name, one.image, one.where) == (f"{path} stage build", "rocm/pytorch:latest", f"{path}:2")
    assert [(row.name, row.value, row.where) for row in one.variables] == [
        ("HSA_OVERRIDE_GFX_VERSION", "10.3.0", f"{path}:6")
    ]
    assert [row.where for row in one.commands] == [f"{path}:9", f"{path}:10"]
    found = {(row.rule, row.where.rpartition(":")[2]) for row in misplaced((one,), MATRIX)}
    assert found == {("image-moves", "2"), ("torch-replaced", "10")}


def test_definition_of_two_stages_yields_both(tmp_path):
    path = put(tmp_path, TEXT + "Bootstrap: localimage\nFrom: a.sif\n%post\n    make\n")
    assert [(one.image, one.commands[0].text) for one in definition.of_definition(path)] == [
        ("rocm/pytorch:latest", "apt-get update"),
        (None, "make"),
    ]


def test_file_without_a_header_is_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="RM311"):
        definition.of_definition(put(tmp_path, "%post\n  make\n"))


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("07-Dockerfile.mine", "# a comment\n\nARG A=1\nFROM rocm/pytorch:$A\n", "stage 0"),
        ("image", "FROM rocm/pytorch:a\n", "stage 0"),
        ("recipe", "# a comment\nBootStrap: docker\nFrom: rocm/pytorch:a\n", "stage 1"),
        ("a.def", "Bootstrap: docker\nFrom: rocm/pytorch:a\n", "stage 0"),
        ("start", "#!/bin/sh\npip install a\n", ""),
    ],
)
def test_file_of_any_name_is_recognised_by_its_first_lines(tmp_path, name, text, kind):
    path = put(tmp_path, text, name)
    assert recognise.subjects(path, shell={})[0].name.startswith(f"{path} {kind.split()[0]}" if kind else str(path))


def test_prose_is_no_dockerfile(tmp_path):
    with pytest.raises(RocmatrixError, match="RM311"):
        recognise.subjects(put(tmp_path, "From the beginning\nof it\n", "notes"), shell={})
