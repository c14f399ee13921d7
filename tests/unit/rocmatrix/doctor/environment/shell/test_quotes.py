"""Lists of targets without quotes."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.shell import quotes


@pytest.mark.parametrize(
    ("row", "divided"),
    [
        ("export PYTORCH_ROCM_ARCH=gfx90a;gfx942", True),
        ("cmake .. -DAMDGPU_TARGETS=gfx90a:xnack-;gfx942", True),
        ("cmake .. -DGPU_TARGETS:STRING=gfx90a gfx942", True),
        ("cmake .. '-DAMDGPU_TARGETS=gfx90a;gfx942'", False),
        ('cmake .. -DAMDGPU_TARGETS="gfx90a;gfx942"', False),
        (r"cmake .. -DAMDGPU_TARGETS=gfx90a\;gfx942", False),
        ("# PYTORCH_ROCM_ARCH=gfx90a;gfx942", False),
        ("for arch in gfx90a gfx942; do", False),
        ("A=gfx90a; gfx942_tool", False),
    ],
)
def test_list_of_targets_that_the_shell_divides_is_an_error(row, divided):
    found = quotes.of_command(Command(text=row, where="a:1", rows=(row,)))
    assert [one.rule for one in found] == ["list-without-quotes"] * divided


def test_value_of_a_variable_is_not_divided_again():
    row = "cmake -DAMDGPU_TARGETS=$TARGETS"
    assert list(quotes.of_command(Command(text="cmake -DAMDGPU_TARGETS=gfx90a;gfx942", where="a:1", rows=(row,)))) == []


@pytest.mark.parametrize(
    ("words", "truth"),
    [
        (["A=", "gfx803", "gfx900"], "A is empty"),
        (["A=gfx803;", "gfx900"], "A is gfx803;"),
        (["A", "gfx803"], "A has no default"),
        (["A=gfx803", "B=gfx900"], ""),
    ],
)
def test_argument_that_declares_each_target_is_an_error(words, truth):
    found = [one.truth for one in quotes.of_argument(words, "a:1")]
    assert [truth in one for one in found] == [True] * bool(truth)
