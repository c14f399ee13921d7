"""What is read of a pyproject file."""

import pytest

from rocmatrix.doctor.environment.files import pyproject
from rocmatrix.runtime.errors import RocmatrixError

ROCM = """
[tool.uv.sources]
torch = [
  {{ index = "pytorch-cpu", marker = "sys_platform != 'linux'" }},
  {{ index = "pytorch-rocm", marker = "sys_platform == 'linux'" }},
]
{more}
[[tool.uv.index]]
name = "pytorch-cpu"
url = "https://download.pytorch.org/whl/cpu"
explicit = true
[[tool.uv.index]]
name = "pytorch-rocm"
url = "https://download.pytorch.org/whl/rocm{rocm}"
explicit = {explicit}
"""


def put(folder, text):
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_extra_yields_a_command_for_each_requirement(tmp_path):
    path = put(tmp_path, '[project.optional-dependencies]\nrocm = ["torch"]\n')
    base, extra = pyproject.of_pyproject(path)
    assert (base.commands, [one.text for one in extra.commands]) == ((), ["pip install torch"])


def test_pyproject_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\ndependencies = ["torch"]\n', encoding="utf-8-sig")
    assert pyproject.of_pyproject(path)[0].commands[0].text.split() == ["pip", "install", "torch"]


@pytest.mark.parametrize("text", ["x = [", "x = " + "[" * 3000 + "]" * 3000])
def test_pyproject_that_is_no_toml_is_refused_with_advice_for_toml(tmp_path, text):
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    with pytest.raises(RocmatrixError) as refused:
        pyproject.of_pyproject(path)
    assert (refused.value.code, "TOML" in refused.value.next) == ("RM311", True)


def test_dependency_has_its_own_line_and_the_index_for_linux(tmp_path):
    text = '[project]\ndependencies = [\n  "numpy",\n  "torch==2.9.1",\n  "colorama; sys_platform == \'win32\'",\n]\n'
    path = put(tmp_path, text + ROCM.format(rocm="6.4", more="", explicit="true"))
    one = pyproject.of_pyproject(path)[0]
    assert [(row.text, row.where) for row in one.commands] == [
        ("uv pip install numpy", f"{path}:3"),
        ("uv pip install --index https://download.pytorch.org/whl/rocm6.4 torch==2.9.1", f"{path}:4"),
    ]
    assert [(pair.torch, pair.rocm) for pair in one.pairs] == [("==2.9.1", "6.4")]


@pytest.mark.parametrize(
    ("rocm", "explicit", "listed", "line"),
    [
        ("6.4", "true", "", 3),
        ("6.4", "false", "", None),
        ("6.4", "true", "pytorch-triton-rocm", None),
        ("7.2", "true", "pytorch-triton-rocm", 4),
        ("7.2", "true", "triton-rocm", None),
        ("5.4.2", "true", "", None),
    ],
)
def test_torch_of_an_explicit_index_needs_its_triton_from_there(tmp_path, rocm, explicit, listed, line):
    more = f'{listed} = {{ index = "pytorch-rocm" }}' if listed else ""
    row = f'  "{listed}",\n' if listed else ""
    text = f'[project]\ndependencies = [\n  "torch",\n{row}]\n' + ROCM.format(rocm=rocm, more=more, explicit=explicit)
    path = put(tmp_path, text)
    found = [note.where for note in pyproject.of_pyproject(path)[0].notes if note.rule == "triton-without-index"]
    assert found == ([f"{path}:{line}"] if line else [])


def test_source_of_an_extra_counts_for_that_extra_alone(tmp_path):
    text = (
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\nrocm = ["torch"]\n[tool.uv.sources]\n'
        'torch = { index = "r", extra = "rocm" }\n[[tool.uv.index]]\nname = "r"\n'
        'url = "https://download.pytorch.org/whl/rocm6.4"\n'
    )
    texts = [one.commands[0].text for one in pyproject.of_pyproject(put(tmp_path, text))]
    index = "--index https://download.pytorch.org/whl/rocm6.4 "
    assert texts == [f"uv pip install {index}torch", f"uv pip install {index}torch"]
    explicit = pyproject.of_pyproject(put(tmp_path, text + "explicit = true\n"))
    assert [one.commands[0].text for one in explicit] == ["uv pip install torch", f"uv pip install {index}torch"]


@pytest.mark.parametrize(("form", "found"), [("", ["folder-as-index"]), ('format = "flat"\n', [])])
def test_folder_of_wheels_is_an_index_where_it_is_flat(tmp_path, form, found):
    text = (
        '[project]\ndependencies = ["torch"]\n[tool.uv.sources]\ntorch = { index = "amd" }\n[[tool.uv.index]]\n'
        f'name = "amd"\nurl = "https://repo.radeon.com/rocm/manylinux/rocm-rel-6.4/"\n{form}'
    )
    one = pyproject.of_pyproject(put(tmp_path, text))[0]
    assert [note.rule for note in one.notes] == found
    assert "--find-links" in one.commands[0].text


TWO = """
[project.optional-dependencies]
cuda = ["torch==2.6.0+cu124"]
rocm = ["torch==2.6.0+rocm6.2.4"]
[tool.uv]
{more}
[tool.uv.sources]
torch = [ {{ index = "torch-rocm", {rocm} }}, {{ index = "torch-cu124", {cuda} }} ]
[[tool.uv.index]]
name = "torch-cu124"
url = "https://download.pytorch.org/whl/cu124"
explicit = true
[[tool.uv.index]]
name = "torch-rocm"
url = "https://download.pytorch.org/whl/rocm6.2.4"
explicit = true
"""


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, True),
        ({"more": 'conflicts = [[{ extra = "cuda" }, { extra = "rocm" }]]'}, False),
        ({"cuda": "marker = \"sys_platform == 'win32'\""}, False),
        ({"cuda": 'extra = "rocm"'}, False),
        ({"cuda": 'extra = "cuda", marker = "sys_platform == \'win32\'"'}, False),
        ({"cuda": 'group = "cuda"', "rocm": 'group = "rocm"'}, True),
    ],
)
def test_extras_of_unlike_indexes_that_nothing_separates_are_an_error(tmp_path, given, found):
    text = TWO.format(**{"more": "", "rocm": 'extra = "rocm"', "cuda": 'extra = "cuda"'} | given)
    rules = [note.rule for one in pyproject.of_pyproject(put(tmp_path, text)) for note in one.notes]
    assert ("extras-not-exclusive" in rules) is found
