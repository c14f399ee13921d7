"""What is read of a pyproject file that lists its dependencies for Poetry."""

import pytest

from rocmatrix.doctor.environment.files import poetry

TEXT = """[tool.poetry.dependencies]
python = "^3.10"
torch = {version = "^2.4.1+rocm6.0", source = "rocm"}
numpy = "^2.2"
mine = {git = "https://example.org/mine.git"}
[tool.poetry.group.dev.dependencies]
pytest = "*"
[[tool.poetry.source]]
name = "rocm"
url = "https://download.pytorch.org/whl/rocm6.0"
priority = "PRIORITY"
"""


def put(folder, text):
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_groups_have_commands_with_the_source_of_each_package(tmp_path):
    path = put(tmp_path, TEXT)
    base, dev = poetry.of_poetry(path)
    assert [(one.text, one.where) for one in base.commands] == [
        ("pip install --index-url https://download.pytorch.org/whl/rocm6.0 'torch<3,>=2.4.1'", f"{path}:3"),
        ("pip install 'numpy<3,>=2.2'", f"{path}:4"),
        ("pip install 'mine @ git+https://example.org/mine.git'", f"{path}:5"),
    ]
    assert [one.text for one in dev.commands] == ["pip install pytest"]
    assert [(pair.torch, pair.rocm) for pair in base.pairs] == [("<3,>=2.4.1", "6.0")]


@pytest.mark.parametrize(
    ("priority", "listed", "found"),
    [("explicit", "", [3]), ("primary", "", []), ("explicit", 'pytorch-triton-rocm = {source = "rocm"}', [])],
)
def test_torch_of_an_explicit_source_needs_its_triton_from_there(tmp_path, priority, listed, found):
    text = TEXT.replace("PRIORITY", priority).replace("numpy = ", f"{listed}\nnumpy = ")
    path = put(tmp_path, text)
    notes = [note.where for note in poetry.of_poetry(path)[0].notes if note.rule == "triton-without-index"]
    assert notes == [f"{path}:{line}" for line in found]


@pytest.mark.parametrize(
    "text", ['[project]\ndependencies = ["torch"]\n', "[tool.poetry]\nname = 1\n", "[tool]\npoetry = 3\n"]
)
def test_file_without_dependencies_for_poetry_is_left_to_others(tmp_path, text):
    assert poetry.of_poetry(put(tmp_path, text)) == ()


@pytest.mark.parametrize(
    ("version", "as_pip"),
    [
        ("^1.2.3", "<2,>=1.2.3"), ("^0.44.1", "<0.45,>=0.44.1"), ("^0.0.3", "<0.0.4,>=0.0.3"), ("^2", "<3,>=2"),
        ("~1.2.3", "<1.3,>=1.2.3"), ("~1", "<2,>=1"), ("1.2", "==1.2"), ("*", ""), (">=2,<3", "<3,>=2"),
        ("^1 || ^2", ""), ("2.*", "==2.*"), ("nonsense", ""),
    ],
)  # fmt: skip
def test_version_is_written_as_pip_does(version, as_pip):
    assert poetry.as_pip_writes(version) == as_pip
