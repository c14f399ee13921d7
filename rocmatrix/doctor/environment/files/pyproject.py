"""A pyproject file as subjects: what pip, uv or Poetry is asked for on Linux, and the index that each package has."""

from __future__ import annotations

import re
import shlex
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocmatrix.doctor.environment.dockerfile import INDEX, installed, read_text
from rocmatrix.doctor.environment.files import settings
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject
from rocmatrix.doctor.environment.packages.folders import FOLDER
from rocmatrix.runtime.errors import RocmatrixError

_AMD = re.compile(r"rocm|amd(?!64)|\bhip\b|gfx\d", re.IGNORECASE)
_BARE_ROCM = re.compile(r"\+rocm(?![\d])")
_LINUX = {
    "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64",
    "python_version": "3.12", "python_full_version": "3.12.0", "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}  # fmt: skip
_TEXT = re.compile(r"\"(?P<double>(?:\\.|[^\"\\])*)\"|'(?P<single>[^']*)'")
_OF_TORCH = re.compile(r"torch(?:vision|audio)?|pytorch-triton-rocm|triton-rocm")
_TRITONS = ("pytorch-triton-rocm", "triton-rocm")
_ALONE, _RENAMED = (5, 7), (7, 0)  # the ROCm from which on PyPI lacks that triton, and it is called triton-rocm


@dataclass(frozen=True, kw_only=True)
class _Index:
    """An index, and whether it serves only what is named with it; `place` is its line."""

    url: str
    explicit: bool
    flat: bool
    default: bool
    place: int


@dataclass(frozen=True, kw_only=True)
class _Project:
    """What a file states of indexes, for the requirements of all its extras and groups."""

    path: Path
    source: str
    texts: Mapping[str, Sequence[int]]
    uv: bool
    indexes: Mapping[str, _Index]
    sources: Mapping[str, Any]


def of_pyproject(path: Path) -> tuple[Subject, ...]:
    """Return the dependencies of a pyproject file, one subject for each extra and group. Raises RM310, RM311."""
    source, root = parsed(path)
    texts = _texts_of(source)
    uv = table(table(root.get("tool")).get("uv"))
    project = _Project(
        path=path, source=source, texts=texts, uv=bool(uv), indexes=_indexes(uv, texts),
        sources={canonicalize_name(str(name)): rows for name, rows in table(uv.get("sources")).items()},
    )  # fmt: skip
    found = tuple(_of_extra(project, name, rows) for name, rows in _extras(root) if rows or name == "dependencies")
    system = table(root.get("build-system"))
    backend = str(system.get("build-backend", "")) if "backend-path" not in system else ""
    whole = list(settings.of_build_backend(backend, f"{path}:{_line_of(texts, backend)}"))
    whole += _undeclared(project) if "conflicts" not in uv else ()
    return (replace(found[0], notes=(*found[0].notes, *whole)), *found[1:])


def parsed(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a TOML file and what it holds. Raises RM310, RM311."""
    source = read_text(path)
    try:
        return source, tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        advice = "Correct the named line: the file is no TOML."
        raise RocmatrixError("RM311", what=what, where=str(path), next=advice) from error


def _indexes(uv: Mapping[str, Any], texts: Mapping[str, Sequence[int]]) -> dict[str, _Index]:
    return {
        str(row.get("name", url)): _Index(
            url=url, explicit=row.get("explicit") is True, flat=row.get("format") == "flat",
            default=row.get("default") is True, place=_line_of(texts, url),
        )
        for row in entries(uv.get("index"))
        if (url := str(row.get("url", "")))
    }  # fmt: skip


def _extras(root: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    project = table(root.get("project"))
    yield "dependencies", _texts(project.get("dependencies"))
    for kind in (table(project.get("optional-dependencies")), table(root.get("dependency-groups"))):
        yield from ((str(name), _texts(rows)) for name, rows in kind.items())


def _of_extra(project: _Project, extra: str, rows: list[str]) -> Subject:
    requested = [(row, one) for row in rows if (one := _requirement(row)) is not None and _on_linux(one.marker, extra)]
    begins = _begins(project.source, extra)
    places = {row: f"{project.path}:{_line_of(project.texts, row, begins)}" for row, _ in requested}
    commands = tuple(
        Command(text=_command(project, one, _index_of(project, one.name, extra)), where=places[row])
        for row, one in requested
    )
    first = next((places[row] for row, one in requested if _OF_TORCH.fullmatch(canonicalize_name(one.name))), None)
    of_rocm = any(re.search(r"rocm", command.text) for command in commands)
    for_amd = bool(_AMD.search(extra)) or of_rocm
    return Subject(
        name=f"{project.path} {extra}", commands=commands, for_amd=for_amd,
        pairs=tuple(pair for one in commands for pair in installed(one.text, one.where)),
        where=first or next(iter(places.values()), f"{project.path}:{begins}"),
        image=f"the extra {extra}" if _AMD.search(extra) else None,
        notes=(*_notes(project, extra, rows, begins), *_triton(project, extra, requested, places)),
    )  # fmt: skip


def _undeclared(project: _Project) -> Iterator[FileFinding]:
    """Yield torch that two extras take from unlike indexes, where nothing states that they exclude each other."""
    taken = {
        str(one["index"]): str(one.get("extra") or one["group"])
        for one in reversed(entries(project.sources.get("torch")))
        if "index" in one and ("extra" in one or "group" in one) and _on_linux(_marker(one), str(one.get("extra", "")))
    }
    if len(set(taken.values())) < 2 or not any("rocm" in index.url for index in project.indexes.values()):
        return
    listed = ", ".join(f'{{ extra = "{extra}" }}' for extra in dict.fromkeys(reversed(taken.values())))
    yield FileFinding(
        rule="extras-not-exclusive", where=f"{project.path}:{_line_of(project.texts, next(reversed(taken)))}",
        what=f"torch of {len(taken)} indexes", severity="error",
        truth="uv resolves all extras together: two of them ask for torch of unlike indexes, and no version is of both",
        instead=f"conflicts = [[{listed}]] in [tool.uv]",
    )  # fmt: skip


def _requirement(row: str) -> Requirement | None:
    try:
        return Requirement(row)
    except InvalidRequirement:
        return None


def _on_linux(marker: Marker | None, extra: str) -> bool:
    """Return whether a marker holds on the machines that have cards for ROCm; one that cannot be known does."""
    try:
        return marker is None or marker.evaluate({**_LINUX, "extra": extra})
    except (InvalidMarker, ValueError):
        return True


def _index_of(project: _Project, name: str, extra: str) -> str | None:
    """Return the name of the index that a package comes from: its own, or the first that is asked for all; None for
    PyPI."""
    named = next((str(one["index"]) for one in _entries_of(project, name, extra) if "index" in one), None)
    if named is not None or not _OF_TORCH.fullmatch(canonicalize_name(name)):
        return named
    return next((key for key, index in project.indexes.items() if not index.explicit and INDEX.search(index.url)), None)


def _entries_of(project: _Project, name: str, extra: str) -> list[dict[str, Any]]:
    return [
        one
        for one in entries(project.sources.get(canonicalize_name(name)))
        if one.get("extra", extra) == extra == one.get("group", extra) and _on_linux(_marker(one), extra)
    ]


def _marker(entry: Mapping[str, Any]) -> Marker | None:
    try:
        return Marker(str(entry["marker"])) if "marker" in entry else None
    except InvalidMarker:
        return None


def _command(project: _Project, one: Requirement, index: str | None) -> str:
    held = project.indexes.get(index or "")
    flat = held is not None and (held.flat or re.match(FOLDER, held.url))
    options = [] if held is None else ["--find-links" if flat else "--index", held.url]
    if held is None and index is not None:
        options = ["--index", f"${index}"]  # one that the file does not define
    one.marker = None
    return shlex.join([*(["uv"] if project.uv else []), "pip", "install", *options, str(one).replace(" ", "")])


def _notes(project: _Project, extra: str, rows: Sequence[str], begins: int) -> Iterator[FileFinding]:
    for row in rows:
        yield from bare_rocm(row, f"{project.path}:{_line_of(project.texts, row, begins)}")
    index = _index_of(project, "torch", extra)
    if index is None or not any(re.match(r"torch\b(?!-)", row) for row in rows):
        return
    held = project.indexes.get(index)
    if held is None:
        yield FileFinding(
            rule="index-not-defined", where=f"{project.path}:{_line_of(project.texts, index)}",
            what=f"index {index}", severity="error",
            truth="tool.uv.sources names an index that no [[tool.uv.index]] defines; uv refuses the file",
            instead=f'[[tool.uv.index]] with name = "{index}", its url and explicit = true',
        )  # fmt: skip
    elif re.match(FOLDER, held.url) and not held.flat:
        yield FileFinding(
            rule="folder-as-index", where=f"{project.path}:{held.place}", what=held.url, severity="error",
            truth="the address is a folder of files, and an index has a page for each project: uv finds none of its "
            "wheels",
            instead='format = "flat" with that index',
        )  # fmt: skip


def _triton(
    project: _Project, extra: str, requested: Sequence[tuple[str, Requirement]], places: Mapping[str, str]
) -> Iterator[FileFinding]:
    """Yield torch from an index that serves only what is named with it, where its triton is not."""
    index = project.indexes.get(_index_of(project, "torch", extra) or "")
    torch = next((row for row, one in requested if canonicalize_name(one.name) == "torch"), None)
    triton = triton_of(index.url) if index is not None and index.explicit else None
    if torch is None or triton is None:
        return
    if triton not in project.sources or not re.search(rf"[\"']{triton}\b(?!-)", project.source):
        # the name of before, where it stands
        other = next((row for row, one in requested if canonicalize_name(one.name) in _TRITONS), torch)
        yield without_triton(places[other], triton, "in tool.uv.sources with that index")


def triton_of(index: str) -> str | None:
    """Return the name of the triton that torch of an index asks for and PyPI lacks; None where there is none.

    Args:
        index: its address.
    """
    named = INDEX.search(index)
    rocm = tuple(map(int, named[1].split(".")[:2])) if named else (0,)
    return None if rocm < _ALONE else "triton-rocm" if rocm >= _RENAMED else "pytorch-triton-rocm"


def without_triton(where: str, triton: str, source: str) -> FileFinding:
    """Return the finding of a torch whose triton cannot be found.

    Args:
        where: the line of torch.
        triton: the name that it has in that index.
        source: how a package is given that index.
    """
    return FileFinding(
        rule="triton-without-index", where=where, what=f"torch without {triton}", severity="error",
        truth=f"torch there asks for {triton}, which that index alone has; it is explicit, so only packages that are "
        "named with it come from it, and no version of torch can be resolved",
        instead=f"{triton} as a dependency too, and {source}",
    )  # fmt: skip


def bare_rocm(row: str, where: str) -> Iterator[FileFinding]:
    """Yield a local version +rocm that has no number.

    Args:
        row: the requirement.
        where: its file and line.
    """
    if _BARE_ROCM.search(row):
        yield FileFinding(
            rule="rocm-without-version", where=where, what=row, severity="error",
            truth="no wheel has the local version +rocm alone: those of PyTorch have the number, such as +rocm6.4",
            instead="name the number, and the index of the same ROCm",
        )  # fmt: skip


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the tables of a list of tables, or of one."""
    rows = value if isinstance(value, list) else [value]
    return [row for row in rows if isinstance(row, dict)]


def table(value: Any) -> dict[str, Any]:
    """Return a table; of another value an empty one."""
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [row for row in value if isinstance(row, str)] if isinstance(value, list) else []


def _begins(source: str, extra: str) -> int:
    """Return the line at which the list of an extra begins."""
    found = re.search(rf"^[ \t]*[\"']?{re.escape(extra)}[\"']?[ \t]*=", source, re.MULTILINE)
    return source.count("\n", 0, found.start()) + 1 if found else 1


def _texts_of(source: str) -> dict[str, list[int]]:
    """Return the quoted texts of a file with the lines that they are on."""
    found: dict[str, list[int]] = {}
    for number, row in enumerate(source.splitlines(), 1):
        for match in _TEXT.finditer(row):
            found.setdefault(match["double"] or match["single"] or "", []).append(number)
    return found


def _line_of(texts: Mapping[str, Sequence[int]], part: str, begins: int = 1) -> int:
    lines = texts.get(part, ())
    return next(iter(lines[bisect_left(lines, begins) :]), begins)
