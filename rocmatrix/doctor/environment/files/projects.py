"""Conda environments and pyproject files as subjects: what pip, uv or conda is asked for, with the index."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rocmatrix.doctor.environment.dockerfile import installed, read_text
from rocmatrix.doctor.environment.files.manifests import documents, items, members, text
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject
from rocmatrix.runtime.errors import RocmatrixError

_AMD = re.compile(r"rocm|amd(?!64)|\bhip\b|gfx\d", re.IGNORECASE)
_CUDA = re.compile(r"^(?:pytorch-cuda|cudatoolkit|cuda-toolkit|nvidia-\w[\w-]*|cuda-nvcc)\b")
_BARE_ROCM = re.compile(r"\+rocm(?![\d])")


def of_conda(path: Path) -> tuple[Subject, ...]:
    """Return a conda environment: its pip section as a command, and what conda's own packages cannot be. Raises RM310,
    RM311."""
    root = items(next(iter(documents(path)), None))
    rows = root.get("dependencies")
    listed = members(rows)
    for_amd = bool(_AMD.search(read_text(path)))
    pip = [row for node in listed for row in members(items(node).get("pip"))]
    where = (
        f"{path}:{(pip[0] if pip else rows or next(iter(root.values()))).start_mark.line + 1}" if root else str(path)
    )
    command = _pip([text(row) for row in pip], where)
    return (
        Subject(
            name=str(path), commands=(command,) if pip else (), pairs=tuple(installed(command.text, where)),
            image="a conda environment" if for_amd else None, where=where, for_amd=for_amd,
            notes=(*_conda_notes(path, listed), *_pip_notes(path, pip)) if for_amd else tuple(_for_cuda(path, listed)),
        ),
    )  # fmt: skip


def _conda_notes(path: Path, listed: list[yaml.Node]) -> Iterator[FileFinding]:
    for node in listed:
        name = text(node).split("::")[-1].strip()
        where = f"{path}:{node.start_mark.line + 1}"
        if re.match(r"^(?:pytorch|pytorch-gpu|torchvision|torchaudio)(?:[ =<>!]|$)", name):
            yield FileFinding(
                rule="conda-has-no-rocm-torch", where=where, what=text(node), severity="error",
                truth="conda's channels build torch for CUDA and for the processor; none is built for ROCm",
                instead="python and pip from conda, then torch by a pip command of its own with --index-url",
            )  # fmt: skip
        elif _CUDA.match(name):
            yield FileFinding(
                rule="cuda-package", where=where, what=text(node), severity="error",
                truth="a package of CUDA in an environment for an AMD card serves nothing", instead="remove it",
            )  # fmt: skip


def _for_cuda(path: Path, listed: list[yaml.Node]) -> Iterator[FileFinding]:
    """Yield the first package of CUDA in an environment that names no maker of cards."""
    node = next((row for row in listed if _CUDA.match(text(row).split("::")[-1].strip())), None)
    if node is not None and not re.search(r"cuda|nvidia", path.name, re.IGNORECASE):
        yield FileFinding(
            rule="nvidia-alone", where=f"{path}:{node.start_mark.line + 1}", what=text(node), severity="note",
            truth="it is made for NVIDIA's cards: conda's channels build torch for CUDA and for the processor",
            instead="for AMD cards: python and pip from conda, then torch by a pip command of its own with --index-url",
        )  # fmt: skip


def _pip_notes(path: Path, pip: list[yaml.Node]) -> Iterator[FileFinding]:
    for row in pip:
        yield from _bare_rocm(text(row), f"{path}:{row.start_mark.line + 1}")


def of_pyproject(path: Path) -> tuple[Subject, ...]:
    """Return the dependencies of a pyproject file, one subject for each extra and group. Raises RM310, RM311."""
    source = read_text(path)
    try:
        root = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        advice = "Correct the named line: the file is no TOML."
        raise RocmatrixError("RM311", what=what, where=str(path), next=advice) from error
    uv = _table(_table(root.get("tool")).get("uv"))
    indexes = {str(row.get("name")): str(row.get("url", "")) for row in _entries(uv.get("index"))}
    sources = _table(uv.get("sources"))
    return tuple(
        _of_extra(path, source, name, rows, sources, indexes)
        for name, rows in _extras(root)
        if rows or name == "dependencies"
    )


def _extras(root: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    project = _table(root.get("project"))
    yield "dependencies", _texts(project.get("dependencies"))
    for kind in (_table(project.get("optional-dependencies")), _table(root.get("dependency-groups"))):
        yield from ((str(name), _texts(rows)) for name, rows in kind.items())


def _of_extra(
    path: Path, source: str, extra: str, rows: list[str], sources: Mapping[str, Any], indexes: Mapping[str, str]
) -> Subject:
    where = (
        f"{path}:{_line_of(source, next((row for row in rows if row.startswith('torch')), rows[0] if rows else extra))}"
    )
    named = [entry for entry in _entries(sources.get("torch")) if entry.get("extra", extra) == extra]
    index = next((str(entry["index"]) for entry in named if "index" in entry), None)
    url = indexes.get(index, "") if index else ""
    for_amd = bool(_AMD.search(extra)) or bool(re.search(r"rocm", url + " ".join(rows)))
    command = _pip([*([f"--index {url}"] if url else []), *rows], where)
    return Subject(
        name=f"{path} {extra}", commands=(command,), pairs=tuple(installed(command.text, where)), where=where,
        image=f"the extra {extra}" if for_amd and _AMD.search(extra) else None, for_amd=for_amd,
        notes=tuple(_source_notes(path, source, rows, index, indexes)),
    )  # fmt: skip


def _source_notes(
    path: Path, source: str, rows: list[str], index: str | None, indexes: Mapping[str, str]
) -> Iterator[FileFinding]:
    for row in rows:
        yield from _bare_rocm(row, f"{path}:{_line_of(source, row)}")
    if index is not None and index not in indexes and any(re.match(r"torch\b", row) for row in rows):
        yield FileFinding(
            rule="index-not-defined", where=f"{path}:{_line_of(source, index)}", what=f"index {index}",
            severity="error",
            truth="tool.uv.sources names an index that no [[tool.uv.index]] defines; uv refuses the file",
            instead=f'[[tool.uv.index]] with name = "{index}", its url and explicit = true',
        )  # fmt: skip


def _bare_rocm(row: str, where: str) -> Iterator[FileFinding]:
    if _BARE_ROCM.search(row):
        yield FileFinding(
            rule="rocm-without-version", where=where, what=row, severity="error",
            truth="no wheel has the local version +rocm alone: those of PyTorch have the number, such as +rocm6.4",
            instead="name the number, and the index of the same ROCm",
        )  # fmt: skip


def _pip(rows: list[str], where: str) -> Command:
    options = " ".join(row for row in rows if row.startswith("-"))
    names = " ".join(shlex.quote(row.split(";")[0].replace(" ", "")) for row in rows if not row.startswith("-"))
    return Command(text=f"pip install {options} {names}", where=where)


def _entries(value: Any) -> list[dict[str, Any]]:
    rows = value if isinstance(value, list) else [value]
    return [row for row in rows if isinstance(row, dict)]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [row for row in value if isinstance(row, str)] if isinstance(value, list) else []


def _line_of(source: str, part: str) -> int:
    return next((number for number, row in enumerate(source.splitlines(), 1) if part in row), 1)
