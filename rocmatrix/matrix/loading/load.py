"""Reading the matrix from disk: strict, and every mistake with its file and line.

People write matrix.yaml and the files next to it; `./invokew lock` writes wheels.yaml and locks.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from rocmatrix.matrix.loading import consistency, strict_yaml
from rocmatrix.matrix.matrix import Matrix, Selector
from rocmatrix.runtime.errors import RocmatrixError, suggestion

MAIN_FILE = "matrix.yaml"
# Each holds the value of one key of the whole; matrix.yaml holds the other keys.
PART_FILES = {
    part: f"matrix/{part}.yaml"
    for part in (
        "architectures",
        "releases",
        "libraries",
        "rules",
        "companions",
        "kernels",
        "baselines",
        "support",
        "wheels",
        "locks",
    )
}

Documents = Mapping[str, strict_yaml.Document]
Mistake = tuple[strict_yaml.Path, str]
Locator = Callable[[strict_yaml.Path], tuple[strict_yaml.Document, strict_yaml.Path]]


def load(root: Path) -> Matrix:
    """Read the matrix of the checkout at `root`. Raises RM001 with every mistake, RM002 when unreadable."""
    return _matrix(tuple(strict_yaml.read_text(root, file) for file in (MAIN_FILE, *PART_FILES.values())))


@lru_cache(maxsize=2)  # a command reads the same files more than once; what is read is frozen
def _matrix(texts: tuple[str, ...]) -> Matrix:
    files = zip((MAIN_FILE, *PART_FILES.values()), texts, strict=True)
    document, *parts = (strict_yaml.parse(text, file=file) for file, text in files)
    return validate(document, dict(zip(PART_FILES, parts, strict=True)))


def validate(document: strict_yaml.Document, parts: Documents) -> Matrix:
    """Turn documents into a `Matrix`. Raises RM001 that lists every mistake with its file and line."""
    problems = [problem for part in (document, *parts.values()) for problem in part.problems]
    if any(part.data is None and part.problems for part in (document, *parts.values())):
        raise _invalid(problems)
    problems += _misplaced(document)
    data = document.data if isinstance(document.data, dict) else {}
    locate = _locator(document, parts)
    try:
        matrix = Matrix.model_validate(data | {key: part.data for key, part in parts.items()})
    except ValidationError as error:
        raise _invalid([*problems, *(_explained(dict(entry), locate) for entry in error.errors())]) from None
    mistakes = list(dangling(matrix)) or list(consistency.contradictions(matrix))
    problems += [_located(locate, mistake) for mistake in mistakes]
    if problems:
        raise _invalid(problems)
    return matrix


M = TypeVar("M", bound=BaseModel)


def part(root: Path, file: str, model: type[M]) -> M:
    """Read one file of statements that stands next to the matrix. Raises RM001 with every mistake, RM002.

    Args:
        root: folder of the checkout.
        file: path of the file below `root`.
        model: pydantic model of the whole file.
    """
    return cast("M", _part(strict_yaml.read_text(root, file), file, model))


@lru_cache(maxsize=32)  # the signatures alone are one file an area
def _part(text: str, file: str, model: type[BaseModel]) -> BaseModel:
    document = strict_yaml.parse(text, file=file)
    if document.problems:
        raise _invalid(document.problems)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise _invalid(_explained(dict(entry), lambda path: (document, path)) for entry in error.errors()) from None


def _invalid(problems: Iterable[strict_yaml.Problem]) -> RocmatrixError:
    return RocmatrixError("RM001", what="\n".join(dict.fromkeys(map(str, problems))))


def _locator(document: strict_yaml.Document, parts: Documents) -> Locator:
    """Return the function that finds the document of a path through the whole, and the path within it."""

    def locate(path: strict_yaml.Path) -> tuple[strict_yaml.Document, strict_yaml.Path]:
        if path and path[0] in parts:
            return parts[str(path[0])], path[1:]
        return document, path

    return locate


def _located(locate: Locator, mistake: Mistake) -> strict_yaml.Problem:
    document, path = locate(mistake[0])
    return document.problem(path, mistake[1])


def _misplaced(document: strict_yaml.Document) -> Iterator[strict_yaml.Problem]:
    for key in document.data if isinstance(document.data, dict) else ():
        if key in PART_FILES:
            yield document.problem((key,), f"{key} stand in {PART_FILES[key]}, not here")


def _explained(error: dict[str, Any], locate: Locator) -> strict_yaml.Problem:
    path: strict_yaml.Path = tuple(step for step in error["loc"] if step != "[key]")
    name = ".".join(map(str, path)) or "the file"
    if error["type"] == "unknown_key":
        return _located(locate, ((*path, error["ctx"]["key"]), f"{name}: {error['msg']}"))
    document, inner = locate(path)
    raw = document.raw(inner)
    if error["type"] == "string_type" and raw is not None:
        message = f'{name}: {raw} is not quoted, so YAML reads a number or a word of its own; write "{raw}"'
        return document.problem(inner, message)
    return document.problem(inner, f"{name}: {error['msg']}")


def dangling(matrix: Matrix) -> Iterator[Mistake]:
    """Yield (path, message) for every reference that leads nowhere, and every name given twice."""
    yield from _dangling_cells(matrix)
    yield from _dangling_architectures(matrix)
    yield from _dangling_locks(matrix)
    yield from _dangling_support(matrix)
    yield from _dangling_baselines(matrix)
    yield from _repeated_releases(matrix)
    yield from _repeated_wheels(matrix)
    yield from _repeated("cells", list(matrix.cell_names))
    ids = [rule.id for rule in (*matrix.derived_rules, *(rule for c in matrix.companions for rule in c.rules))]
    yield from _repeated("rules", [rule.id for rule in matrix.rules], taken=ids)
    yield from _repeated("kernels", [library.library for library in matrix.kernels])
    yield from _repeated("companions", [companion.package for companion in matrix.companions])


def _dangling_cells(matrix: Matrix) -> Iterator[Mistake]:
    known: dict[str, Collection[str]] = {
        "release": matrix.release_by_name,
        "architecture": matrix.architectures,
        "base": matrix.bases,
    }
    for index, cell in enumerate(matrix.cell_entries):
        for axis, names in known.items():
            name = getattr(cell, axis)
            if name is not None and name not in names:
                yield ("cells", index, axis), _unknown(axis, name, names)
        release = matrix.release_by_name.get(cell.release)
        if cell.prune and (cell.architecture is None or (release and release.device_code.layout != "bundled")):
            message = "only bundled wheels for an architecture can be pruned; other cells choose when they install"
            yield ("cells", index, "prune"), message


def _dangling_architectures(matrix: Matrix) -> Iterator[Mistake]:
    for path, named in _named_architectures(matrix):
        for position, name in enumerate(named):
            if name not in matrix.architectures:
                yield (*path, position), _unknown("architecture", name, matrix.architectures)


def _named_architectures(matrix: Matrix) -> Iterator[tuple[strict_yaml.Path, list[str]]]:
    """Yield every list of architectures in the files, with its path."""
    for index, series in enumerate(matrix.series):
        yield ("releases", index, "device_code", "architectures"), series.device_code.architectures or []
    for library, statements in matrix.libraries.by_name.items():
        for index, statement in enumerate(statements):
            for field in ("accepted", "preferred", "supported", "experimental"):
                yield ("libraries", library, index, field), getattr(statement, field, [])
            yield ("libraries", library, index, "when", "architectures"), _selected(statement.when)
    for index, variable in enumerate(matrix.environment):
        yield ("environment", index, "when", "architectures"), _selected(variable.when)
        for number, when in enumerate(variable.unless):
            yield ("environment", index, "unless", number, "architectures"), _selected(when)
    for index, rule in enumerate(matrix.rules):
        yield ("rules", index, "when", "architectures"), _selected(rule.when)
    for index, companion in enumerate(matrix.companions):
        for number, pairing in enumerate(companion.versions):
            yield ("companions", index, "versions", number, "when", "architectures"), _selected(pairing.when)
        for number, rule in enumerate(companion.rules):
            yield ("companions", index, "rules", number, "when", "architectures"), _selected(rule.when)
    for index, kernels in enumerate(matrix.kernels):
        for number, when in enumerate(kernels.required):
            yield ("kernels", index, "required", number, "architectures"), _selected(when)


def _dangling_support(matrix: Matrix) -> Iterator[Mistake]:
    lines = {release.rocm for release in matrix.releases if release.rocm}
    for index, table in enumerate(matrix.support):
        for rocm in table.rocm:
            if rocm not in lines:
                yield ("support", index, "rocm"), _unknown("ROCm line", rocm, lines)
        for field in ("listed", "maintained"):
            for gfx, cards in getattr(table, field).items():
                known = matrix.architectures[gfx].names if gfx in matrix.architectures else ()
                for position, card in enumerate(cards):
                    if card not in known:
                        yield ("support", index, field, gfx, position), _unknown(f"card of {gfx}", card, known)


def _selected(selector: Selector) -> list[str]:
    return selector.architectures or []


def _dangling_baselines(matrix: Matrix) -> Iterator[Mistake]:
    cells = matrix.cell_names
    for index, baseline in enumerate(matrix.baselines):
        if baseline.cell not in cells:
            yield ("baselines", index, "cell"), _unknown("cell", baseline.cell, cells)
    yield from _repeated("baselines", [baseline.cell for baseline in matrix.baselines])


def _dangling_locks(matrix: Matrix) -> Iterator[Mistake]:
    for name, pythons in matrix.locks.items():
        if not any(release.owns_lock(name) for release in matrix.releases):
            yield ("locks", name), _unknown("release", name, matrix.release_by_name)
        for python, files in pythons.items():
            for position, file in enumerate(files):
                if file not in matrix.wheels:
                    yield ("locks", name, python, position), _unknown("wheel", file, matrix.wheels)


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    return f"there is no {kind} {name!r}; {suggestion(name, known)}"


def _repeated_releases(matrix: Matrix) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, series in enumerate(matrix.series):
        for release in series.releases():
            if release.name in seen:
                yield ("releases", index, "torch", release.torch), f"{release.name!r} is given a second time"
            seen.add(release.name)


def _repeated_wheels(matrix: Matrix) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, hashes in enumerate(matrix.hashes):
        for file in hashes.sha256:
            if file in seen:
                yield ("wheels", index, "sha256", file), f"{file!r} is given a second time"
            seen.add(file)


def _repeated(group: str, names: list[str], *, taken: Iterable[str] = ()) -> Iterator[Mistake]:
    seen = set(taken)
    for index, name in enumerate(names):
        if name in seen:
            yield (group, index), f"{name!r} is given a second time"
        seen.add(name)
