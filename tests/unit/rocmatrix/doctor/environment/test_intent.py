"""Whether a file means an AMD card is read from its name, its image, its variables and its indexes."""

import pytest

from rocmatrix.doctor.environment.intent import file_is_for_amd, means_amd
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        (Subject(name="Dockerfile.rocm stage 0"), True),
        (Subject(name="requirements-amd.txt"), True),
        (Subject(name="Dockerfile.amd64 stage 0"), False),
        (Subject(name="chroma.txt"), False),
        (Subject(name="docker-compose.rocm.yml service db"), False),
        (Subject(name="a", image="rocm/pytorch:x"), True),
        (Subject(name="a", image="python:3.12"), False),
        (Subject(name="a", for_amd=True), True),
        (Subject(name="a", launch=Launch(image="a", where="a:1", devices=("/dev/kfd",))), True),
        (Subject(name="a", variables=(Assignment(name="HSA_XNACK", value="1", where="a:1"),)), True),
        (Subject(name="a", variables=(Assignment(name="ROCM_VERSION", value="6.2", where="a:1"),)), True),
        (Subject(name="a", variables=(Assignment(name="CUDA_HOME", value="1", where="a:1"),)), False),
        (Subject(name="a", commands=(Command(text="pip install torch==2.9.1+rocm6.4", where="a:1"),)), True),
        (Subject(name="a", commands=(Command(text="pip install torch==2.9.1+cu126", where="a:1"),)), False),
    ],
)
def test_subject_means_an_amd_card_by_what_it_names(subject, answer):
    assert means_amd(subject) is answer


def test_file_of_several_services_is_not_for_amd_as_a_whole():
    assert file_is_for_amd(Subject(name="/x/Dockerfile.rocm stage build"))
    assert not file_is_for_amd(Subject(name="/x/compose.rocm.yml service db"))
