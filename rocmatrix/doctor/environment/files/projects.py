"""Conda environments as subjects: what conda and its pip are asked for, with the index."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import yaml

from rocmatrix.doctor.environment.dockerfile import installed, read_text
from rocmatrix.doctor.environment.files.manifests import documents, items, members, text
from rocmatrix.doctor.environment.files.pyproject import bare_rocm
from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Subject

_AMD = re.compile(r"rocm|amd(?!64)|\bhip\b|gfx\d", re.IGNORECASE)
_CUDA = re.compile(r"^(?:pytorch-cuda|cudatoolkit|cuda-toolkit|nvidia-\w[\w-]*|cuda-nvcc)\b")


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
        yield from bare_rocm(text(row), f"{path}:{row.start_mark.line + 1}")


def _pip(rows: list[str], where: str) -> Command:
    options = " ".join(row for row in rows if row.startswith("-"))
    names = " ".join(shlex.quote(row.split(";")[0].replace(" ", "")) for row in rows if not row.startswith("-"))
    return Command(text=f"pip install {options} {names}", where=where)
