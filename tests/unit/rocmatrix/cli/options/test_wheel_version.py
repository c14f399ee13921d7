"""A torch as `pip list` prints it: what follows the plus sign names the ROCm, or other cards."""

import pytest

from rocmatrix.cli.options.common import wheel_version
from rocmatrix.runtime.errors import RocmatrixError


@pytest.mark.parametrize(
    ("torch", "rocm", "gpu", "axes"),
    [
        ("2.4.1", "", "", ("2.4.1", "", "")),
        ("2.4.1+rocm6.0", "", "MI50", ("2.4.1", "6.0", "MI50")),
        ("2.7.1+rocm6.2.4", "", "", ("2.7.1", "6.2.4", "")),
        ("2.4.0+rocm6.3.0.lw.git7cecbf6d", "", "", ("2.4.0", "6.3.0", "")),
        ("2.4.1+rocm6.0", "6.0.0", "", ("2.4.1", "6.0.0", "")),
        ("2.13.0+cpu", "", "", ("2.13.0", "", "cpu")),
        ("2.7.0a0+git295f2ed", "6.4", "MI300A", ("2.7.0a0", "6.4", "MI300A")),
        ("2.8.0+gitunknown", "", "", ("2.8.0", "", "")),
        ("2.13.0+cpu", "", "gfx1100", ("2.13.0", "", "gfx1100")),
        ("", "6.3", "", ("", "6.3", "")),
    ],
)
def test_version_of_a_wheel_names_its_rocm(torch, rocm, gpu, axes):
    assert wheel_version(torch, rocm, gpu) == axes


@pytest.mark.parametrize("torch", ["2.5.1+cu124", "2.5.1+xpu", "2.5.1+rocm", "2.5.1+", "2.5.1+rocm6"])
def test_wheel_that_is_not_for_these_cards_is_refused(torch):
    with pytest.raises(RocmatrixError, match="is no build for AMD cards"):
        wheel_version(torch, "", "")


def test_two_versions_of_rocm_contradict_each_other():
    with pytest.raises(RocmatrixError, match=r"is of ROCm 6\.0, and --rocm asks for 6\.3"):
        wheel_version("2.4.1+rocm6.0", "6.3", "")
