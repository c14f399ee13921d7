"""Nightly builds that are asked for and not there."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.packages import nightlies
from tests.fixtures.cells import MATRIX

INDEX = "https://download.pytorch.org/whl/nightly/rocm7.2"


def of(text):
    return [one.rule for one in nightlies.found(Command(text=text, where="a:1"))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"pip install torch --extra-index-url {INDEX}", ["torch-index-next-to-pypi"]),
        (f"pip install --pre torch --extra-index-url {INDEX}", []),
        (f"uv pip install torch --extra-index-url {INDEX}", []),
        (f"pip install torch --index-url {INDEX}", []),
        (f"pip install numpy --extra-index-url {INDEX}", []),
        (f"pip install torch==2.12.0.dev20260401 --extra-index-url {INDEX}", ["nightly-deleted"]),
        ("pip install torch==2.12.0.dev20260401 --find-links /wheels", []),
    ],
)
def test_nightly_build_that_pip_does_not_take_or_find_is_a_finding(text, found):
    assert of(text) == found


def test_index_of_an_old_rocm_has_ended():
    old = Command(text="pip install --pre torch -i https://download.pytorch.org/whl/nightly/rocm5.7", where="a:1")
    assert [one.rule for one in nightlies.ended(old, MATRIX)] == ["nightly-ended"]
