"""A request for a cell, the cells that fit it, and their order of preference."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

from packaging.version import InvalidVersion, Version

from rocmatrix.matrix.matrix import Cell

_SERIES = re.compile(r"\d{1,3}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """The axes a person named; None leaves an axis open. `gpu` is a gfx name, a card or `auto`.

    `companions` are packages to add to the cell; they have no part in choosing it. `rocm_release` is the release as
    typed where `rocm` is the name of its wheels: 6.4.2 for 6.4. A `rocm` or `torch` of one number is a series.
    """

    rocm: str | None = None
    rocm_release: str | None = None
    torch: str | None = None
    gpu: str | None = None
    cell: str | None = None
    python: str | None = None
    companions: tuple[str, ...] = ()

    def __str__(self) -> str:
        axes = {**vars(self), "rocm_release": None, "companions": None, "with": ",".join(self.companions) or None}
        given = [f"--{axis} {value}" for axis, value in axes.items() if value is not None]
        return " ".join(given) or "nothing in particular"


def fits(cell: Cell, request: Request) -> bool:
    """Return whether a cell has every axis that a request names."""
    if request.gpu == "cpu" and cell.architecture is not None:
        return False
    if request.gpu not in (None, "cpu") and cell.architecture != request.gpu:
        return False
    if not same_version(request.python, cell.python):
        return False
    release = cell.release
    return agrees(request.rocm, release.rocm) and agrees(request.torch, release.torch)


def is_series(version: str | None) -> TypeGuard[str]:
    """Return whether a version names all of a major number: `6` is any ROCm 6, as conda and tags of images have it."""
    return version is not None and bool(_SERIES.fullmatch(version))


def is_open(version: str | None) -> bool:
    """Return whether a request leaves the choice of a version: it names none, or a series."""
    return version is None or is_series(version)


@lru_cache(maxsize=4096)
def agrees(requested: str | None, version: str | None) -> bool:
    """Return whether a ROCm or a torch is what a request names: the same version, or one of the series."""
    if version is None or not is_series(requested):
        return same_version(requested, version)
    try:
        return Version(version).major == int(requested)
    except InvalidVersion:
        return False


@lru_cache(maxsize=4096)  # the same few versions are compared for every release and cell
def same_version(requested: str | None, version: str | None) -> bool:
    """Return whether two versions are equal; an axis that is open fits every version."""
    if requested is None or version is None:
        return requested is None
    try:
        return Version(requested) == Version(version)
    except ValueError:  # InvalidVersion, and for a number of more digits than Python reads
        return False


Rank = tuple[bool, bool, tuple[bool, bool], bool, list[int]]


def preference(request: Request) -> Callable[[Cell], Rank]:
    """Return the sort key, best first; the file's order breaks ties.

    A cell that can be built from checked wheels comes before one that cannot, and one of the usual Python before one
    whose name holds another. On one architecture this
    project's recommendation leads. Where the architecture is open, AMD's own list leads: a person with no
    card at hand wants the one that most can run.
    """

    def rank(cell: Cell) -> Rank:
        marks = (not cell.recommended, not cell.official)
        release = cell.release
        newest = [-part for part in Version(release.rocm or "0").release + Version(release.torch).release]
        unlocked = cell.unlocked_because is not None
        degraded = cell.verdict == "degraded"
        return unlocked, cell.names_python, (marks if request.gpu else marks[::-1]), degraded, newest

    return rank
