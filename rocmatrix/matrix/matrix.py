"""The matrix: releases, architectures, cells and rules, each with its evidence.

These are the frozen models of the whole and of its cells; `rocmatrix.matrix.loading.load` reads them from disk.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field

from rocmatrix.matrix import derived_rules as derive
from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.cells.cell import FILE_TOKEN, WITH, Base, Cell, CellEntry, Kind, Variable
from rocmatrix.matrix.cells.wheel import Hashes, Wheel
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.kernel_library import Baseline, KernelLibrary
from rocmatrix.matrix.library import Libraries, Statement
from rocmatrix.matrix.release import Release, Series
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import (
    Evidence,
    GfxName,
    Selector,
    Strict,
    Text,
    VersionText,
)
from rocmatrix.matrix.support import Support, SupportTable, support
from rocmatrix.runtime.errors import RocmatrixError, suggestion

__all__ = [
    "Architecture", "Base", "Cell", "CellEntry", "Evidence", "Matrix",
    "Release", "Rule", "Selector", "Variable", "Wheel",
]  # fmt: skip


class Matrix(Strict):
    """The compatibility matrix. `series` and `cell_entries` are as written; `releases` and `cells` follow from them."""

    schema_version: Literal[1] = Field(alias="schema")
    bases: dict[str, Base]
    architectures: dict[GfxName, Architecture]
    series: list[Series] = Field(alias="releases", min_length=1)
    libraries: Libraries
    environment: list[Variable]
    cell_entries: list[CellEntry] = Field(alias="cells", min_length=1)
    rules: list[Rule]
    companions: list[Companion]
    kernels: list[KernelLibrary] = Field(min_length=1)
    baselines: list[Baseline]
    support: list[SupportTable]
    hashes: list[Hashes] = Field(alias="wheels")
    locks: dict[str, dict[VersionText, list[Text]]]

    def __copy__(self) -> Self:
        """Copy what was read and not what was computed from it: `model_copy` may change the former."""
        copied = super().__copy__()
        for computed in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[computed]
        return copied

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """Every single release, in the order of the file."""
        return tuple(release for series in self.series for release in series.releases())

    @cached_property
    def wheels(self) -> dict[str, Wheel]:
        """Every wheel with a recorded hash, by the name of its file."""
        return {file: wheel for hashes in self.hashes for file, wheel in hashes.wheels()}

    @cached_property
    def release_by_name(self) -> dict[str, Release]:
        """Releases under their made names."""
        return {release.name: release for release in self.releases}

    @cached_property
    def derived_rules(self) -> tuple[Rule, ...]:
        """The rules that follow from releases and libraries."""
        return derive.rules(self.releases, self.architectures, self.libraries)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every written cell, resolved, in the order of the file."""
        return tuple(self._resolved(entry, self.release_by_name[entry.release]) for entry in self.cell_entries)

    @cached_property
    def cell_names(self) -> tuple[str, ...]:
        """The names of the written cells, in the order of the file."""
        return tuple(self._name(entry) for entry in self.cell_entries)

    def cell(self, name: str) -> Cell:
        """Return a cell by name: written, derived, or either with companions. Raises RM010 with the nearest names."""
        stem, _, added = name.partition(WITH)
        found = next((cell for cell in self.cells if cell.name == stem), None) or self._derived_by_name(stem)
        files = re.findall(FILE_TOKEN, added)
        companions = companions_in(added, [*(companion.package for companion in self.companions), *files])
        if found is None or companions is None or found.adding(companions).name != name:
            hint = suggestion(name, self.cell_names)
            raise RocmatrixError("RM010", what=f"there is no cell {name!r}", where="matrix.yaml", next=hint)
        return found.adding(companions)

    def rules_on(self, architecture: str | None, release: Release) -> tuple[Rule, ...]:
        """Return every rule, written or derived, that applies to an architecture with a release."""
        axes = architecture, release.torch, release.rocm
        if axes not in self._rules_by_axes:
            self._rules_by_axes[axes] = tuple(
                rule
                for rule in (*self.rules, *self.derived_rules)
                if rule.when.matches(architecture=architecture, torch=release.torch, rocm=release.rocm)
            )
        return self._rules_by_axes[axes]

    @cached_property
    def _rules_by_axes(self) -> dict[tuple[str | None, str, str | None], tuple[Rule, ...]]:
        return {}  # filled as it is used: a page of the whole matrix has each combination's rules some thirty times

    def derived(self, architecture: str | None, release: Release, *, python: str | None = None) -> Cell | None:
        """Derive the cell of any combination, whatever rules exclude it; None where no base has a Python for it.

        Without a `python` it is the first, in the order of bases, whose hashes are recorded, else the first.

        Args:
            architecture: gfx name; None for the CPU.
            python: version such as "3.12"; None for the first with recorded hashes, else the first of all.
        """
        bases = [name for name in self._bases(architecture, release) if python in (None, self.bases[name].python)]
        if not bases:
            return None
        locked = self.locks.get(release.lock_name(architecture), {})
        base = next((name for name in bases if self.bases[name].python in locked), bases[0])
        layout = release.device_code.layout
        return self._resolved(
            CellEntry(
                release=release.name,
                architecture=architecture,
                base=base,
                prune=architecture is not None and layout == "bundled",
                why="derived from its release and the rules on request; not one of those that are recommended",
                evidence=release.evidence,
            ),
            release,
            written=False,
        )

    def _bases(self, architecture: str | None, release: Release) -> list[str]:
        """Return the bases of a combination, by name: those of its kind that bring a Python it was built for."""
        kind = _kind(architecture, release)
        return [name for name, base in self.bases.items() if kind in base.serves and base.python in release.pythons]

    def _derived_by_name(self, name: str) -> Cell | None:
        """Return the derived cell of a name: names are made and compared, never taken apart."""
        for release in self.releases:
            if not name.startswith(release.name):
                continue
            for architecture in [None] if release.rocm is None else self.architectures:
                if not name.startswith("-".join(filter(None, (release.name, architecture)))):
                    continue
                pythons = [self.bases[base].python for base in self._bases(architecture, release)]
                made = (self.derived(architecture, release, python=python) for python in pythons)
                if found := next((cell for cell in made if cell is not None and cell.name == name), None):
                    return found
        return None

    def support_of(self, architecture: str | None, rocm: str | None, *, card: str | None = None) -> Support:
        """Return what AMD's lists state of an architecture, or of one card of it, with one ROCm line.

        Args:
            architecture: gfx name; None for the CPU.
            rocm: ROCm version, such as "7.2"; None for a CPU build.
            card: name of one card; None for the whole architecture.
        """
        return support(self.support, architecture=architecture, rocm=rocm, card=card)

    def libraries_of(self, cell: Cell) -> dict[str, list[Statement]]:
        """Return what is known of the libraries and drivers of a cell, by library."""
        release = cell.release
        return self.libraries.of(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)

    def kernel_libraries_of(self, cell: Cell) -> tuple[KernelLibrary, ...]:
        """Return the libraries whose kernels an image of `cell` must hold."""
        architecture, release = cell.architecture, cell.release
        if architecture is None:
            return ()
        axes: dict[str, Any] = {"architecture": architecture, "torch": release.torch, "rocm": release.rocm}
        return tuple(library for library in self.kernels if library.required_on(**axes))

    def baseline(self, cell: str) -> Baseline | None:
        """Return the sizes recorded for a cell."""
        return next((baseline for baseline in self.baselines if baseline.cell == cell), None)

    def for_python(self, cell: Cell, python: str) -> Cell | None:
        """Return the cell with the wheels of another Python, or None where these are not all locked."""
        base = cell.base.model_copy(update={"python": python})
        other = cell.model_copy(update={"base": base, "wheels": self._wheels(cell.lock_name, python)})
        return None if other.unlocked_because else other

    def _wheels(self, lock: str, python: str) -> tuple[tuple[str, Wheel], ...]:
        files = self.locks.get(lock, {}).get(python, [])
        return tuple((file, self.wheels[file]) for file in files)

    def _name(self, entry: CellEntry) -> str:
        """Return a cell's name, with the Python where it is not that of the first base of its kind."""
        base, release = self.bases.get(entry.base), self.release_by_name.get(entry.release)
        if base is None or release is None:  # told as a mistake of the file
            return entry.name()
        kind = _kind(entry.architecture, release)
        usual = next((other.python for other in self.bases.values() if kind in other.serves), base.python)
        return entry.name(None if base.python == usual else base.python)

    def _resolved(self, entry: CellEntry, release: Release, *, written: bool = True) -> Cell:
        axes: dict[str, Any] = {"architecture": entry.architecture, "torch": release.torch, "rocm": release.rocm}
        base = self.bases[entry.base]
        architecture = self.architectures[entry.architecture] if entry.architecture else None
        return Cell(
            name=self._name(entry),
            written=written,
            release=release,
            architecture=entry.architecture,
            cards=tuple(architecture.cards) if architecture else (),
            base=base,
            recommended=entry.recommended,
            prune=entry.prune,
            official=self.support_of(entry.architecture, release.rocm).official,
            why=entry.why,
            evidence=entry.evidence,
            environment=tuple(v for v in self.environment if v.applies(**axes)),
            rules=self.rules_on(entry.architecture, release),
            wheels=self._wheels(release.lock_name(entry.architecture), base.python),
        )


def _kind(architecture: str | None, release: Release) -> Kind:
    """Return what a base must be fit for to hold a combination."""
    return release.device_code.layout if architecture else "cpu"


def companions_in(text: str, known: Collection[str]) -> tuple[str, ...] | None:
    """Return the companions that a name holds, None where it holds another word; their own names may have dashes."""
    if not text:
        return ()
    for package in known:
        rest = text.removeprefix(package)
        if rest == text or (rest and not rest.startswith("-")):
            continue
        if (others := companions_in(rest[1:], known)) is not None and rest != "-":
            return (package, *others)
    return None
