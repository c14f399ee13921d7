"""Folders of wheels that are given as indexes, and indexes as folders."""

import pytest

from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from rocmatrix.doctor.environment.packages import folders

FOLDER = "https://repo.radeon.com/rocm/manylinux/rocm-rel-6.4/"
INDEX = "https://download.pytorch.org/whl/rocm6.4"


def of(*, command="", variable=("A", "")):
    rows = (Assignment(name=variable[0], value=variable[1], where="a:1"),)
    return [(one.rule, one.fix.after if one.fix else None) for one in folders.found(
        Subject(name="a", commands=(Command(text=command, where="a:2"),), variables=rows))]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "found"),
    [
        (f"--index-url {FOLDER}", [("folder-as-index", f"--find-links {FOLDER}")]),
        (f"--extra-index-url={FOLDER}", [("folder-as-index", f"--find-links={FOLDER}")]),
        (f'-i "{FOLDER}"', [("folder-as-index", f'-f "{FOLDER}')]),
        (f"-f {FOLDER}", []),
        (f"-f {INDEX}", [("index-as-folder", None)]),
        (f"--find-links={INDEX}/", [("index-as-folder", None)]),
        ("-f https://download.pytorch.org/whl/torch_stable.html", []),
        ("-f https://download.pytorch.org/whl/cu118/torch_stable.html", []),
        (f"--index-url {INDEX}", []),
        ("-i https://repo.radeon.com/rocm/apt/6.4/", []),
    ],
)
def test_option_for_the_other_kind_of_address_is_an_error(option, found):
    assert of(command=f"pip install {option} torch") == found


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("PIP_EXTRA_INDEX_URL", FOLDER, ["folder-as-index"]),
        ("UV_DEFAULT_INDEX", FOLDER, ["folder-as-index"]),
        ("PIP_FIND_LINKS", INDEX, ["index-as-folder"]),
        ("PIP_FIND_LINKS", FOLDER, []),
        ("PIP_INDEX_URL", INDEX, []),
    ],
)
def test_variable_for_the_other_kind_of_address_is_an_error(name, value, found):
    assert [rule for rule, _ in of(variable=(name, value))] == found
