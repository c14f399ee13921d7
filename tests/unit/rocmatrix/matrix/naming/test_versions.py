"""Versions in the spellings of people, of pip and of wheels."""

import pytest

from rocmatrix.cli.options.common import Axes
from rocmatrix.matrix.naming import versions
from rocmatrix.runtime.errors import RocmatrixError


@pytest.mark.parametrize(
    ("text", "number"),
    [("6.4", "6.4"), ("ROCm 6.4", "6.4"),
     ("rocm6.4.1", "6.4.1"), ("ROCm7", "7"), ("rocm-v7.2", "7.2"),
     ("7.1.1-1", "7.1.1"), ("6.3.42131-fa1d09cbd", "6.3.42131"), ("nightly", "nightly"),
     ("6.4.x", "6.4"), ("6.4.*", "6.4"), ("HIP SDK 6.2", "6.2"), ("HIP_SDK 6.4.2", "6.4.2"), ("TheRock 7.14", "7.14"),
     ("6.3.4 (WSL)", "6.3.4"), ("ROCm 6.4.1 (Ubuntu 24.04)", "6.4.1"), ("/opt/rocm-6.4.1", "6.4.1"),
     ("7.14.0a20260601", "7.14.0"), ("7.0.0rc1", "7.0.0"), ("7.0 beta", "7.0"), ("nightly/rocm7.0", "7.0"),
     ("rocm7.0 nightly", "7.0"), ("6.0.2.60002-115~22.04", "6.0.2"), ("5.4.6.50406-148-22.04", "5.4.6"),
     ("6.4.0-1.fc42", "6.4.0"), ("7.2.1-1~bpo", "7.2.1"), ("1:5.7.1-3ubuntu", "5.7.1"),
     ("https://download.pytorch.org/whl/rocm6.3", "6.3"),
     ("rocm/pytorch:rocm6.4.1_ubuntu24.04_py3.12_pytorch_release_2.6.0", "6.4.1"),
     ("\uff16.\uff14", "6.4"), ("\u0666.\u0664", "6.4"), ("6.x", "6.x"),
     ("rocm7.*", "rocm7.*"), ("ROCm 6.X", "ROCm 6.X"),
     ("6.3 or 6.4", "6.3 or 6.4"), ("6.2/6.3", "6.2/6.3"), (">=6.3", ">=6.3"), ("6.3+", "6.3+"), ("~6.3", "~6.3"),
     ("rocm6.3, rocm6.4", "rocm6.3, rocm6.4"), ("TheRock nightly", "TheRock nightly"), ("cpu", "cpu"), ("", "")],
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
        ("2.7.x", "2.7"),
        ("2.x", "2.x"),
        ("\uff12.\uff19", "2.9"),
        ("2.6.0-rocm6.2.4", "2.6.0+rocm6.2.4"),
        ("2.5.1_rocm6.2", "2.5.1+rocm6.2"),
        ("2.5.1-rocm", "2.5.1"),
        ("python-pytorch-rocm 2.8.0", "2.8.0"),
        ("pytorch-rocm 2.7.0", "2.7.0"),
        ("pytorch_release_2.6.0, py3.12", "2.6.0"),
        ("2.12.0.dev20260408", "2.12.0.dev20260408"),
        ("2.9.0rc2", "2.9.0rc2"),
        ("2.7.0a0+git295f2ed", "2.7.0a0+git295f2ed"),
        (">=2.4", ">=2.4"),
        ("2.4.1 / 2.5.1", "2.4.1 / 2.5.1"),
        ("torch 2.7.1 CUDA 12.8", "torch 2.7.1 CUDA 12.8"),
    ],
)
def test_torch_in_any_spelling_is_its_number_with_its_build(text, both):
    assert versions.torch(text) == both


@pytest.mark.parametrize(
    ("text", "number"),
    [("3.12", "3.12"), ("py3.12", "3.12"), ("cp312", "3.12"), ("python 3.11.9", "3.11"),
     ("313t", "3.13t"), ("2.7", "2.7"), ("py3.9.19 (main)", "3.9"), ("3.12-slim", "3.12"), ("conda 3.11", "3.11"),
     ("3.11 or 3.12", "3.11 or 3.12"), (">=3.11", ">=3.11"), ("3", "3")],
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
        ("", "2.9.1+rocm7.2.1", "7.2", "7.2.1"),
        ("", "2.4.0+rocm6.1.2", "6.1", "6.1.2"),
        ("6.4.43482-0f2d60242", "2.7.0a0+git295f2ed", "6.4", "6.4.43482"),
        ("cpu", "", "cpu", None),
    ],
)
def test_request_keeps_the_release_that_was_typed_next_to_its_wheels(typed, torch, rocm, release):
    request = Axes(torch=torch, rocm=typed, gpu="gfx1100", cell="", python="").request
    assert (request.rocm, request.rocm_release) == (rocm, release)
    assert str(request).count("rocm") == 1


@pytest.mark.parametrize(
    ("text", "release"),
    [("2.12.0.dev20260408", "2.12.0"), ("2.9.0rc2", "2.9.0"), ("2.7.0a0", "2.7.0"), ("7.13.0a20260508", "7.13.0"),
     ("2.12.0", None), ("nightly", None), ("", None)],
)  # fmt: skip
def test_build_before_a_release_names_it(text, release):
    assert versions.before_release(text) == release


@pytest.mark.parametrize(
    ("text", "older"),
    [("5.2", True), ("1.0", True), ("5.3", False), ("7.13", False), ("0.5.0", False), ("5.2rc1", False), ("x", False)],
)
def test_version_precedes_those_that_are_recorded(text, older):
    assert versions.precedes(text, ["6.0", "5.3", "10.0"]) is older


@pytest.mark.parametrize(
    ("text", "number"),
    [("6", "6"), ("6.x", "6"), ("ROCm 6.X", "6"), ("rocm7.*", "7"), ("ROCm 7", "7"), ("torch 2.x", "2"), ("v2", "2"),
     ("6.0", None), ("6.3.x", None), ("6+", None), (">=6", None), ("6 or 7", None), ("cpu", None), ("", None),
     ("7" * 5000, None)],
)  # fmt: skip
def test_series_is_one_number_alone(text, number):
    assert versions.series(text) == number


def test_series_of_several_lines_is_none_of_them():
    assert versions.line("6", LINES) == "6"
    assert versions.line("6", ["6.0", "7.1"]) == "6.0"


@pytest.mark.parametrize(
    ("rocm", "torch", "named"),
    [
        ("6", "", ("6", None)),
        ("6.x", "2.x", ("6", "2")),
        ("ROCm 7.*", "torch 2", ("7", "2")),
        ("6", "2.4.1+rocm6.0", ("6.0", "2.4.1")),
        ("6.0", "2.4.1+rocm6.0", ("6.0", "2.4.1")),
        ("10", "", ("10.0", None)),
    ],
)
def test_request_names_a_series_by_its_number_and_a_wheel_its_own_rocm(rocm, torch, named):
    request = Axes(torch=torch, rocm=rocm, gpu="gfx1100", cell="", python="").request
    assert (request.rocm, request.torch, request.rocm_release) == (*named, None)


def test_wheel_of_another_series_is_refused():
    with pytest.raises(RocmatrixError, match="RM404"):
        Axes(torch="2.4.1+rocm6.0", rocm="7", gpu="", cell="", python="").request  # noqa: B018


@pytest.mark.parametrize("axis", ["rocm", "torch", "python", "cell", "gpu"])
def test_value_that_no_version_or_card_has_is_refused_by_its_length(axis):
    given = {"rocm": "", "torch": "", "gpu": "", "cell": "", "python": "", axis: "7" * 5000}
    with pytest.raises(RocmatrixError, match="RM404") as refused:
        Axes(**given).request  # noqa: B018
    assert "5,000 characters" in refused.value.render()
    assert len(refused.value.render()) < 400
