"""Targets of `run --for`, and their registry: each module of this room registers its own by `TARGETS`.

A target is its text and its rows: what is handed to the engine, and each part of it with reason and source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from rocmatrix.containers.runspec import Explanation, RunSpec, explain
from rocmatrix.host.hardware import Hardware
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.runtime.registry import registered

NO_SPEC = RunSpec(cell="none", image="none", command=(), settings=())  # for a target of the host alone


@dataclass(frozen=True, kw_only=True)
class Host:
    """Facts of a host that an emitter needs next to the spec. `rootless`: the person is not root.

    `editor_engine` is what an editor calls to make a development container; podman, where a user runs it.
    """

    hardware: Hardware
    rootless: bool = False
    selinux: bool = False
    editor_engine: Literal["docker", "podman"] = "docker"


def _plain(spec: RunSpec, _: Host) -> tuple[Explanation, ...]:
    return explain(spec)


def _no_hints(_: RunSpec, __: Host) -> tuple[str, ...]:
    return ()


def _overwrite(_: Path) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Target:
    """A way to run: the text that is handed on, and what explains it.

    `host_alone` states that the text is about the host, whatever the spec; `for_editor` that a person works in the
    container with an editor. `hints` are what the text alone does not show. `require_free` raises where the file that
    is about to be written is another program's.
    """

    about: str
    text: Callable[[RunSpec, Host], str]
    rows: Callable[[RunSpec, Host], tuple[Explanation, ...]] = _plain
    hints: Callable[[RunSpec, Host], tuple[str, ...]] = _no_hints
    require_free: Callable[[Path], None] = _overwrite
    host_alone: bool = False
    for_editor: bool = False


@cache
def known() -> Mapping[str, Target]:
    """Return the targets of this room by the names that `--for` takes."""
    room = import_module(__package__)  # by name: it imports its emitters, and they this module
    return {name: each for found in registered(room, "TARGETS") for name, each in found.items()}


def target(name: str) -> Target:
    """Return a target. Raises RM404 for an unknown one, naming the nearest."""
    if name not in known():
        raise RocmatrixError("RM404", what=f"--for takes no {name!r}", why=suggestion(name, known()))
    return known()[name]
