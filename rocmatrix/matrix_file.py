"""Reading the matrix from disk: strict, and every mistake with its file and line.

matrix.yaml is written by people. The files named in `PART_FILES` are written by `./invokew lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rocmatrix import yaml_lines
from rocmatrix.errors import RocmatrixError, suggestion
from rocmatrix.matrix import Matrix, Selector

MAIN_FILE = "matrix.yaml"
PART_FILES = {"wheels": "matrix/wheels.yaml", "locks": "matrix/locks.yaml"}


def load(root: Path) -> Matrix:
    """Read the matrix of the checkout at `root`. Raises RM001 with every mistake, RM002 when unreadable."""
    document = yaml_lines.read(root / MAIN_FILE)
    parts = {key: yaml_lines.read(root / file) for key, file in PART_FILES.items()}
    return validate(document, parts)


def validate(document: yaml_lines.Document, parts: dict[str, yaml_lines.Document]) -> Matrix:
    """Turn documents into a `Matrix`. Raises RM001 that lists every mistake with its file and line."""
    problems = [problem for part in (document, *parts.values()) for problem in part.problems]
    locate = _locator(document, parts)
    data = document.data if isinstance(document.data, dict) else {}
    data = data | {key: part.data for key, part in parts.items()}
    try:
        matrix = Matrix.model_validate(data)
        problems += [locate(path, message) for path, message in dangling(matrix)]
    except ValidationError as error:
        problems += [_explained(dict(entry), locate, document) for entry in error.errors()]
        matrix = None
    if problems or matrix is None:
        raise RocmatrixError("RM001", what="\n".join(dict.fromkeys(map(str, problems))))
    return matrix


Locator = Callable[[yaml_lines.Path, str], yaml_lines.Problem]


def _locator(document: yaml_lines.Document, parts: dict[str, yaml_lines.Document]) -> Locator:
    def locate(path: yaml_lines.Path, message: str) -> yaml_lines.Problem:
        if path and path[0] in parts:
            return parts[str(path[0])].problem(path[1:], message)
        return document.problem(path, message)

    return locate


def _explained(error: dict[str, Any], locate: Locator, document: yaml_lines.Document) -> yaml_lines.Problem:
    path: yaml_lines.Path = tuple(step for step in error["loc"] if step != "[key]")
    name = ".".join(map(str, path)) or "the file"
    if error["type"] == "unknown_key":
        return locate((*path, error["ctx"]["key"]), f"{name}: {error['msg']}")
    if error["type"] == "string_type" and path in document.raw:
        raw = document.raw[path]
        return locate(path, f'{name}: {raw} is not quoted, so YAML reads a number or a word of its own; write "{raw}"')
    return locate(path, f"{name}: {error['msg']}")


def dangling(matrix: Matrix) -> Iterator[tuple[yaml_lines.Path, str]]:
    """Yield (path, message) for every reference that leads nowhere, and every name given twice."""
    yield from _dangling_cells(matrix)
    yield from _dangling_releases(matrix)
    yield from _dangling_locks(matrix)
    yield from _dangling_selectors(matrix, "environment", [variable.when for variable in matrix.environment])
    yield from _dangling_selectors(matrix, "rules", [rule.when for rule in matrix.rules])
    yield from _repeated("releases", [release.name for release in matrix.releases])
    yield from _repeated("cells", [entry.name for entry in matrix.cell_entries])
    yield from _repeated("rules", [rule.id for rule in matrix.rules])


def _dangling_selectors(matrix: Matrix, group: str, selectors: list[Selector]) -> Iterator[tuple[yaml_lines.Path, str]]:
    for index, selector in enumerate(selectors):
        for name in sorted(set(selector.architectures or ()) - set(matrix.architectures)):
            yield (group, index, "when", "architectures"), _unknown("architecture", name, matrix.architectures)


def _dangling_cells(matrix: Matrix) -> Iterator[tuple[yaml_lines.Path, str]]:
    releases = matrix.release_by_name
    for index, cell in enumerate(matrix.cell_entries):
        if cell.release not in releases:
            yield ("cells", index, "release"), _unknown("release", cell.release, releases)
        if cell.architecture and cell.architecture not in matrix.architectures:
            message = _unknown("architecture", cell.architecture, matrix.architectures)
            yield ("cells", index, "architecture"), message
        if cell.base not in matrix.bases:
            yield ("cells", index, "base"), _unknown("base", cell.base, matrix.bases)


def _dangling_locks(matrix: Matrix) -> Iterator[tuple[yaml_lines.Path, str]]:
    for name, pythons in matrix.locks.items():
        if name not in matrix.release_by_name:
            yield ("locks", name), _unknown("release", name, matrix.release_by_name)
        for python, files in pythons.items():
            for position, file in enumerate(files):
                if file not in matrix.wheels:
                    yield ("locks", name, python, position), _unknown("wheel", file, matrix.wheels)


def _dangling_releases(matrix: Matrix) -> Iterator[tuple[yaml_lines.Path, str]]:
    for index, release in enumerate(matrix.releases):
        for architecture in sorted(set(release.architectures) - set(matrix.architectures)):
            message = _unknown("architecture", architecture, matrix.architectures)
            yield ("releases", index, "architectures"), message


def _unknown(kind: str, name: str, known: Any) -> str:
    return f"there is no {kind} {name!r}; {suggestion(name, known)}"


def _repeated(group: str, names: list[str]) -> Iterator[tuple[yaml_lines.Path, str]]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield (group, index), f"{name!r} is given a second time"
