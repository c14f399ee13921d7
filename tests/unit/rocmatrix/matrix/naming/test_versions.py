"""Versions in the spellings of people, of pip and of wheels."""

import pytest

from rocmatrix.cli.options.common import Axes
from rocmatrix.matrix.naming import versions
from rocmatrix.runtime.errors import RocmatrixError


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
        ("2.8.0", ("2.8.0", None)),
        ("torch 2.8.0+rocm6.4", ("2.8.0", "6.4")),
        ("torch==2.8", ("2.8", None)),
        ("PyTorch v2.7.1", ("2.7.1", None)),
        ("2.13.0+cpu", ("2.13.0", "cpu")),
        ("2.6.0+cu124", ("2.6.0+cu124", None)),
        ("nightly", ("nightly", None)),
    ],
)
def test_torch_in_any_spelling_is_its_number_and_its_build(text, both):
    assert versions.torch(text) == both


@pytest.mark.parametrize(
    ("text", "number"),
    [("3.12", "3.12"), ("py3.12", "3.12"), ("cp312", "3.12"), ("python 3.11.9", "3.11"),
     ("313t", "3.13t"), ("2.7", "2.7")],
)  # fmt: skip
def test_python_in_any_spelling_is_its_number(text, number):
    assert versions.python(text) == number


def test_request_takes_the_rocm_of_the_build_that_torch_names():
    request = Axes(torch="2.8.0+rocm6.4", python="cp312", rocm="", gpu="", cell="").request
    assert (request.torch, request.rocm, request.python) == ("2.8.0", "6.4", "3.12")


def test_torch_of_another_build_than_the_rocm_named_is_refused():
    with pytest.raises(RocmatrixError, match="RM011") as caught:
        versions.torch_and_rocm("2.8.0+rocm6.4", "6.3")
    assert "ROCm 6.4" in caught.value.what and "6.3" in caught.value.what
