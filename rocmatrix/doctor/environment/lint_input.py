"""What is linted: the variables, command lines and installed pairs of one shell, cell, service or image stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.host.hardware import Hardware
from rocmatrix.matrix.matrix import Cell


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A variable with its value, and where it was set: "the shell", or a file and line."""

    name: str
    value: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command line, and where it stands; `rows` are the lines of the file that it spans, as they are written."""

    text: str
    where: str
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pair:
    """torch as it is asked for ("==2.5.1", "" for any) from PyTorch's index of one ROCm version."""

    torch: str
    rocm: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A safe correction: at a file and line, one text for another; or `after` put next to it, where it is `added`."""

    where: str
    before: str
    after: str
    added: bool = False


@dataclass(frozen=True, kw_only=True)
class FileFinding:
    """Something wrong that the reader of a file saw in its form; it becomes a finding as it is."""

    rule: str
    where: str
    what: str
    severity: Literal["error", "warning", "note"]
    truth: str
    instead: str
    fix: Fix | None = None


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One environment. Architectures and versions are what is known of the run; None or empty where nothing is.

    `image` is what it is built on or started from, named at `where`; `launch` how it is started, where that is written.
    `for_amd` states that the file itself means an AMD card; `notes` are what its reader saw. `compiles`: something is
    built from source in it; `user`: whom its commands run as, where a Dockerfile names one; `inherits`: another stage
    is its base, whose commands have run; `one_shell`: its commands run in one shell, one after another.
    """

    name: str
    variables: tuple[Assignment, ...] = ()
    commands: tuple[Command, ...] = ()
    pairs: tuple[Pair, ...] = ()
    architectures: tuple[str, ...] = ()
    torch: str | None = None
    rocm: str | None = None
    image: str | None = None
    where: str | None = None
    launch: Launch | None = None
    for_amd: bool = False
    compiles: bool = False
    user: str | None = None
    inherits: bool = False
    one_shell: bool = False
    notes: tuple[FileFinding, ...] = ()


_INSTALLS = re.compile(r"^\s*(?:\S*/)?(?:python[\d.]* -m )?(?:uv )?pip[\d.]* (?:\S+ ){0,9}?install ")


def with_held_commands(subject: Subject) -> Subject:
    """Return a subject with the installs that its variables hold for another program, as TORCH_COMMAND does."""
    held = (Command(text=row.value, where=row.where) for row in subject.variables if _INSTALLS.match(row.value))
    return replace(subject, commands=(*subject.commands, *held))


def of_shell(environment: Mapping[str, str], hardware: Hardware, cell: Cell | None = None) -> Subject:
    """Return the environment that a native run would inherit, on this host's cards.

    Args:
        environment: variables of the shell by name.
    """
    rows = tuple(Assignment(name=name, value=value, where="the shell") for name, value in sorted(environment.items()))
    return Subject(
        name="the shell",
        variables=rows,
        architectures=(cell.architecture,) if cell and cell.architecture else hardware.architectures,
        torch=cell.release.torch if cell else None,
        rocm=cell.release.rocm if cell else None,
    )


def of_cell(cell: Cell) -> Subject:
    """Return the environment that a cell's image sets."""
    where = f"matrix.yaml, for {cell.name}"
    return Subject(
        name=cell.name,
        variables=tuple(Assignment(name=row.name, value=row.value, where=where) for row in cell.environment),
        architectures=(cell.architecture,) if cell.architecture else (),
        torch=cell.release.torch,
        rocm=cell.release.rocm,
    )


def on_cell(subject: Subject, cell: Cell | None) -> Subject:
    """Return a subject that is to run in `cell`: what the file itself does not state of the run is the cell's."""
    if cell is None:
        return subject
    return replace(
        subject,
        architectures=subject.architectures or ((cell.architecture,) if cell.architecture else ()),
        torch=subject.torch or cell.release.torch,
        rocm=subject.rocm or cell.release.rocm,
    )
