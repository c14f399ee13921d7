"""The version of the features' code is that of the modules that decide values, of all of them and of no other."""

import ast
from pathlib import Path

import pytest

from trainer.data.features import build_features
from trainer.runtime.paths import PACKAGE


def imported(file: Path) -> set[Path]:
    """The modules of trainer that a file imports, at its top or later."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("trainer."):
            module = PACKAGE.parent.joinpath(*node.module.split("."))
            found |= {module.with_suffix(".py"), *(module / f"{alias.name}.py" for alias in node.names)}
            found |= set(module.parent.glob("*.c"))  # what a module next to it compiles
    return {path for path in found if path.is_file()}


def closure(file: Path) -> set[Path]:
    seen, waiting = set(), [file]
    while waiting:
        if (path := waiting.pop()) not in seen:
            seen.add(path)
            waiting += imported(path) if path.suffix == ".py" else []
    return seen


def test_deciding_lists_every_module_of_data_that_build_imports() -> None:
    needed = {path.relative_to(PACKAGE).as_posix() for path in closure(Path(build_features.__file__))}
    assert sorted(build_features.DECIDING) == sorted(name for name in needed if name.startswith("data/"))
    assert len(build_features.DECIDING) == len(set(build_features.DECIDING)) > 20


@pytest.mark.parametrize(
    ("name", "changes"),
    [(build_features.DECIDING[0], True), (build_features.DECIDING[-1], True), ("data/loading/sampler.py", False)],
)
def test_code_version_changes_with_a_deciding_module_only(
    name: str, changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build_features.code_version()
    for each in (*build_features.DECIDING, "data/loading/sampler.py"):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_bytes((PACKAGE / each).read_bytes() + b"# other\n" * (each == name))
    monkeypatch.setattr(build_features, "PACKAGE", tmp_path)
    build_features.code_version.cache_clear()
    try:
        assert (build_features.code_version() != before) == changes
    finally:
        build_features.code_version.cache_clear()
