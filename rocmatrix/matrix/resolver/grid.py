"""The grid: what is known of every architecture with every ROCm release of torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from packaging.version import Version

from rocmatrix.matrix.matrix import Architecture, Cell, Matrix, Release
from rocmatrix.matrix.rule import verdict_of
from rocmatrix.matrix.statement import Verdict

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Square:
    """One architecture with one release. `locked` and `recommended` speak of its cell, and are False without one."""

    architecture: str
    release: str
    verdict: Verdict
    cell: str | None
    locked: bool
    recommended: bool
    official: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """The squares of one architecture, in the order of the grid's releases. `names` are its cards."""

    architecture: str
    family: str
    names: tuple[str, ...]
    squares: tuple[Square, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Rows of architectures, columns of releases."""

    releases: tuple[Release, ...]
    rows: tuple[Row, ...]

    @property
    def by_rocm(self) -> dict[str, tuple[Release, ...]]:
        """The columns that stand under one ROCm version."""
        versions = dict.fromkeys(str(release.rocm) for release in self.releases)
        return {version: tuple(r for r in self.releases if r.rocm == version) for version in versions}

    def described(self) -> dict[str, Any]:
        """Return it for programs, with the version of this layout."""
        columns = [{"name": r.name, "rocm": r.rocm, "torch": r.torch} for r in self.releases]
        return {"schema": SCHEMA, "releases": columns, "architectures": [asdict(row) for row in self.rows]}


def grid(matrix: Matrix) -> Grid:
    """Judge every architecture with every release for a ROCm, by ROCm and then by torch.

    The CPU's build is in no column: no architecture runs it.
    """
    releases = sorted((release for release in matrix.releases if release.rocm), key=_age)
    cells = {(cell.architecture, cell.release.name): cell for cell in matrix.cells}
    rows = (
        Row(
            architecture=gfx,
            family=entry.family,
            names=entry.names,
            squares=tuple(_square(matrix, gfx, entry, r, cells.get((gfx, r.name))) for r in releases),
        )
        for gfx, entry in matrix.architectures.items()
    )
    return Grid(releases=tuple(releases), rows=tuple(rows))


def _age(release: Release) -> tuple[Version, Version]:
    return Version(str(release.rocm)), Version(release.torch)


def _square(matrix: Matrix, gfx: str, entry: Architecture, release: Release, cell: Cell | None) -> Square:
    return Square(
        architecture=gfx,
        release=release.name,
        verdict=verdict_of(matrix.rules_on(gfx, release)),
        cell=cell.name if cell else None,
        locked=cell is not None and cell.unlocked_because is None,
        recommended=cell is not None and cell.recommended,
        official=entry.official.covers(release.rocm),
    )
