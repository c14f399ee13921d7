"""The grid: what is known of every architecture with every ROCm release of torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from packaging.version import Version

from rocmatrix.matrix.matrix import Cell, Matrix, Release
from rocmatrix.matrix.resolver.judgement import Judgement, Measured, judge

SCHEMA = 2


@dataclass(frozen=True, kw_only=True)
class Square:
    """One architecture with one release. `locked` and `recommended` describe its cell, and are False without one.

    `verdict` is the headline, `because` the reason for it. `listed` are the cards on AMD's list; where these are not
    all cards of the architecture, `others` is the headline of the rest.
    """

    architecture: str
    release: str
    verdict: Judgement
    because: str
    listed: tuple[str, ...]
    others: Judgement | None
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


def grid(matrix: Matrix, *, measured: Measured = ()) -> Grid:
    """Judge every architecture with every release for a ROCm: the newest ROCm first, and of each the newest torch.

    The CPU's build is in no column: no architecture runs it. `measured` is what this project's records show at work.
    """
    releases = sorted((release for release in matrix.releases if release.rocm), key=_age, reverse=True)
    cells = {(cell.architecture, cell.release.name): cell for cell in matrix.cells}
    rows = (
        Row(
            architecture=gfx,
            family=entry.family,
            names=entry.names,
            squares=tuple(_square(matrix, gfx, r, cells.get((gfx, r.name)), measured) for r in releases),
        )
        for gfx, entry in matrix.architectures.items()
    )
    return Grid(releases=tuple(releases), rows=tuple(rows))


def _age(release: Release) -> tuple[Version, Version]:
    return Version(str(release.rocm)), Version(release.torch)


def _square(matrix: Matrix, gfx: str, release: Release, cell: Cell | None, measured: Measured) -> Square:
    rules = matrix.rules_on(gfx, release)
    judged = judge(matrix, architecture=gfx, release=release, rules=rules, measured=measured)
    support = matrix.support_of(gfx, release.rocm)
    return Square(
        architecture=gfx,
        release=release.name,
        verdict=judged.verdict,
        because=judged.because,
        listed=support.cards,
        others=judged.others,
        cell=cell.name if cell else None,
        locked=cell is not None and cell.unlocked_because is None,
        recommended=cell is not None and cell.recommended,
        official=support.official,
    )
