"""Versions in the spellings of people, of pip and of wheels."""

import pytest

from rocmatrix.cli.options.common import Axes
from rocmatrix.matrix.naming import versions


@pytest.mark.parametrize(
    ("text", "number"),
    [("6.4", "6.4"), ("ROCm 6.4", "6.4"),
     ("rocm6.4.1", "6.4.1"), ("ROCm7", "7"), ("rocm-v7.2", "7.2"), ("nightly", "nightly")],
)  # fmt: skip
def test_rocm_in_any_spelling_is_its_number(text, number):
    assert versions.rocm(text) == number


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("2.8.0", "2.8.0"),
        ("torch 2.8.0+rocm6.4", "2.8.0+rocm6.4"),
        ("2.8.0 + ROCm6.4", "2.8.0+rocm6.4"),
        ("torch==2.8", "2.8"),
        ("PyTorch v2.7.1", "2.7.1"),
        ("2.6.0+cu124", "2.6.0+cu124"),
        ("nightly", "nightly"),
    ],
)
def test_torch_in_any_spelling_is_its_number_with_its_build(text, both):
    assert versions.torch(text) == both


@pytest.mark.parametrize(
    ("text", "number"),
    [("3.12", "3.12"), ("py3.12", "3.12"), ("cp312", "3.12"), ("python 3.11.9", "3.11"),
     ("313t", "3.13t"), ("2.7", "2.7")],
)  # fmt: skip
def test_python_in_any_spelling_is_its_number(text, number):
    assert versions.python(text) == number


def test_request_takes_the_rocm_of_the_build_that_torch_names():
    request = Axes(torch="torch 2.8.0+rocm6.4", python="cp312", rocm="", gpu="", cell="").request
    assert (request.torch, request.rocm, request.python) == ("2.8.0", "6.4", "3.12")
