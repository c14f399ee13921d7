"""The matrix: releases, architectures, cells and rules, each with its evidence.

These are the frozen models of the whole and of its cells; `rocmatrix.matrix.loading.load` reads them from disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rocmatrix.matrix import derived_rules as derive
from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.kernel_library import Baseline, KernelLibrary
from rocmatrix.matrix.library import Libraries, Statement
from rocmatrix.matrix.release import Release, Series
from rocmatrix.matrix.rule import Rule, verdict_of
from rocmatrix.matrix.statement import (
    Confidence,
    Digest,
    Evidence,
    GfxName,
    Selector,
    Sha256,
    Strict,
    Text,
    Verdict,
    VersionText,
)
from rocmatrix.matrix.support import Support, SupportTable, support
from rocmatrix.runtime.errors import RocmatrixError, suggestion

__all__ = [
    "Architecture", "Base", "Cell", "CellEntry", "Evidence", "Matrix",
    "Release", "Rule", "Selector", "Variable", "Wheel",
]  # fmt: skip


# As PEP 427 names them; the first two fields are package and version.
WheelFile = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._]+-[0-9][^-/]*(-[^-/]+){3,4}\.whl$")]


class Base(Strict):
    """A base image, the Python its distribution brings, and the packages an image adds to it."""

    image: Text
    digest: Digest | None = None
    digest_unknown_because: Text | None = None
    python: VersionText
    packages: list[Text]
    hipcc: bool = False
    evidence: Evidence

    @property
    def reference(self) -> str:
        """The image by digest where one is known, by tag otherwise."""
        return f"{self.image}@{self.digest}" if self.digest else self.image


class Hashes(Strict):
    """The hashes of wheel files that were read in one place. `index` says who serves the files themselves.

    `pytorch` stands for the index of the release: PyTorch's own, or AMD's.
    """

    index: Literal["python", "pytorch"]
    sources: list[Text] = Field(min_length=1)
    confidence: Confidence
    sha256: dict[WheelFile, Sha256] = Field(min_length=1)

    def wheels(self) -> Iterator[tuple[str, Wheel]]:
        """Yield every file with what is known of it."""
        about: dict[str, Any] = {"index": self.index, "sources": self.sources, "confidence": self.confidence}
        for file, digest in self.sha256.items():
            name, version = file.split("-", 2)[:2]
            # Everything has been checked on the way in, and hundreds of files are read at every start.
            yield (
                file,
                Wheel.model_construct(name=name.replace("_", "-").lower(), version=version, sha256=digest, **about),
            )


class Wheel(Strict):
    """One wheel file: the package and version of its name, the hash it must have, and where that was read."""

    name: Text
    version: VersionText
    sha256: Sha256
    index: Literal["python", "pytorch"]
    sources: list[Text] = Field(min_length=1)
    confidence: Confidence


class Variable(Strict):
    """An environment variable that images set, with the reason for it."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
    value: str
    when: Selector
    why: Text
    evidence: Evidence


class CellEntry(Strict):
    """A cell as written in the file: names only. `Matrix.cells` gives it resolved.

    `prune` removes other architectures' files from the kernel libraries of bundled wheels, while these are installed.
    """

    release: Text
    architecture: GfxName | None
    base: Text
    recommended: bool = False
    prune: bool = False
    why: Text
    evidence: Evidence

    @property
    def name(self) -> str:
        """The release's name and the architecture; made from data, never taken apart again."""
        return f"{self.release}-{self.architecture}" if self.architecture else self.release


class Cell(BaseModel):
    """A cell with everything its name stands for: what is rendered, built and run."""

    model_config = ConfigDict(frozen=True)

    name: str
    release: Release
    architecture: str | None
    cards: tuple[str, ...]
    base: Base
    recommended: bool
    prune: bool
    official: bool
    why: str
    evidence: Evidence
    environment: tuple[Variable, ...]
    rules: tuple[Rule, ...]
    wheels: tuple[tuple[str, Wheel], ...]
    companions: tuple[str, ...] = ()

    @property
    def image_name(self) -> str:
        """The cell's name, with the companions that were added to it."""
        return "-".join([self.name, *(["with", *self.companions] if self.companions else [])])

    @property
    def python(self) -> str:
        """The Python version of the image, such as 3.12: the one its base brings."""
        return self.base.python

    @property
    def broken_by(self) -> tuple[Rule, ...]:
        """The rules that call this combination broken."""
        return tuple(rule for rule in self.rules if rule.verdict == "broken" and rule.decides)

    @property
    def verdict(self) -> Verdict:
        """The worst that a rule says of this combination, `untested` where none speaks."""
        return verdict_of(self.rules)

    @property
    def requirement(self) -> str:
        """What pip is asked for to get torch with this cell's kernels."""
        return self.release.requirement(self.architecture)

    @property
    def one_architecture(self) -> bool:
        """Whether its images are to hold the kernels of its own architecture alone."""
        return self.prune or self.release.by_architecture

    @property
    def lock_name(self) -> str:
        """The name of the cell's lock in matrix/locks.yaml."""
        return self.release.lock_name(self.architecture)

    @property
    def unlocked_because(self) -> str | None:
        """Why the cell cannot be built from checked wheels alone, None where it can."""
        if not any(wheel.name == "torch" for _, wheel in self.wheels):
            return f"no hash is recorded for torch {self.release.torch} on Python {self.python}"
        if not any(wheel.index == "python" for _, wheel in self.wheels):
            return f"the packages beside torch are not resolved yet for Python {self.python}"
        names = {wheel.name for _, wheel in self.wheels}
        if missing := [name for name in self.release.device_packages(self.architecture or "") if name not in names]:
            return f"no hash is recorded for {', '.join(missing)}"
        return None


class Matrix(Strict):
    """The whole. `series` and `cell_entries` are as written; `releases` and `cells` are resolved from them."""

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
        """Every cell, resolved, in the order of the file."""
        return tuple(self._resolved(entry, self.release_by_name[entry.release]) for entry in self.cell_entries)

    def cell(self, name: str) -> Cell:
        """Return one cell. Raises RM010 with the nearest names when there is none."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        hint = suggestion(name, [entry.name for entry in self.cell_entries])
        raise RocmatrixError("RM010", what=f"there is no cell {name!r}", where="matrix.yaml", next=hint)

    def rules_on(self, architecture: str | None, release: Release) -> tuple[Rule, ...]:
        """Return every rule, written or derived, that speaks of an architecture with a release."""
        axes: dict[str, Any] = {"architecture": architecture, "torch": release.torch, "rocm": release.rocm}
        return tuple(rule for rule in (*self.rules, *self.derived_rules) if rule.when.matches(**axes))

    def improvised(self, architecture: str, release: Release) -> Cell | None:
        """Make a cell that the file lacks, for a request that was forced; None where no base fits the release.

        It takes the base of a cell whose wheels are laid out alike, of the same release where there is one.
        """
        alike = [entry for entry in self.cell_entries if self._lends_its_base(entry, release)]
        alike.sort(key=lambda entry: entry.release != release.name)
        if not alike:
            return None
        why = "made for a request that was forced; no cell of the matrix"
        entry = CellEntry(
            release=release.name, architecture=architecture, base=alike[0].base, why=why, evidence=release.evidence
        )
        return self._resolved(entry, release)

    def _lends_its_base(self, entry: CellEntry, release: Release) -> bool:
        other = self.release_by_name[entry.release]
        same_layout = other.device_code.layout == release.device_code.layout
        return entry.architecture is not None and same_layout and self.bases[entry.base].python in release.pythons

    def support_of(self, architecture: str | None, rocm: str | None, *, card: str | None = None) -> Support:
        """Return what AMD's lists say of an architecture, or of one card of it, with one ROCm line."""
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

    def _resolved(self, entry: CellEntry, release: Release) -> Cell:
        axes: dict[str, Any] = {"architecture": entry.architecture, "torch": release.torch, "rocm": release.rocm}
        base = self.bases[entry.base]
        architecture = self.architectures[entry.architecture] if entry.architecture else None
        return Cell(
            name=entry.name,
            release=release,
            architecture=entry.architecture,
            cards=tuple(architecture.cards) if architecture else (),
            base=base,
            recommended=entry.recommended,
            prune=entry.prune,
            official=self.support_of(entry.architecture, release.rocm).official,
            why=entry.why,
            evidence=entry.evidence,
            environment=tuple(v for v in self.environment if v.when.matches(**axes)),
            rules=self.rules_on(entry.architecture, release),
            wheels=self._wheels(release.lock_name(entry.architecture), base.python),
        )
