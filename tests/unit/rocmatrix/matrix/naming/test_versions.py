"""Versions in the spellings of people, of pip and of wheels."""

import pytest

from rocmatrix.cli.options.common import Axes
from rocmatrix.matrix.naming import versions


@pytest.mark.parametrize(
    ("text", "number"),
    [("6.4", "6.4"), ("ROCm 6.4", "6.4"),
     ("rocm6.4.1", "6.4.1"), ("ROCm7", "7"), ("rocm-v7.2", "7.2"),
     ("7.1.1-1", "7.1.1"), ("6.3.42131-fa1d09cbd", "6.3.42131"), ("nightly", "nightly")],
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


LINES = ["5.4.2", "6.2", "6.2.4", "6.3", "7.1", "7.14", "10.0"]


@pytest.mark.parametrize(
    ("release", "wheels"),
    [
        ("6.3", "6.3"),
        ("6.3.2", "6.3"),
        ("6.2.2", "6.2"),
        ("6.2.4", "6.2.4"),
        ("6.2.5", "6.2.4"),
        ("5.4", "5.4.2"),
        ("5.4.3", "5.4.2"),
        ("7.1.26233", "7.1"),
        ("10", "10.0"),
        ("7.13", "7.13"),
        ("7", "7"),
        ("4.1.1", "4.1.1"),
        ("cpu", "cpu"),
    ],
)
def test_patch_release_of_rocm_is_served_by_the_wheels_of_its_line(release, wheels):
    assert versions.line(release, LINES) == wheels


@pytest.mark.parametrize(
    ("typed", "torch", "rocm", "release"),
    [
        ("6.4.2", "", "6.4", "6.4.2"),
        ("6.4.0", "", "6.4", None),
        ("6.4", "", "6.4", None),
        ("6.2.2", "2.5.1+rocm6.2", "6.2", "6.2.2"),
        ("", "2.9.1+rocm7.2.1", "7.2.1", None),
        ("cpu", "", "cpu", None),
    ],
)
def test_request_keeps_the_release_that_was_typed_next_to_its_wheels(typed, torch, rocm, release):
    request = Axes(torch=torch, rocm=typed, gpu="gfx1100", cell="", python="").request
    assert (request.rocm, request.rocm_release) == (rocm, release)
    assert str(request).count("rocm") == 1
