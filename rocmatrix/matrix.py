"""The matrix: releases, architectures, cells and rules, each with its evidence.

These are the frozen models; `rocmatrix.matrix_file` reads them from disk.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from rocmatrix import gfx
from rocmatrix.errors import RocmatrixError, suggestion

Confidence = Literal["verified in source", "reported", "derived", "measured here"]
Verdict = Literal["works", "degraded", "broken", "untested"]


def _version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        raise PydanticCustomError("version", "'{text}' is not a version", {"text": text}) from None
    return text


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise PydanticCustomError("specifier", "'{text}' is not a version range", {"text": text}) from None
    return text


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
VersionText = Annotated[str, AfterValidator(_version)]
RangeText = Annotated[str, AfterValidator(_specifier)]
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
GfxName = Annotated[str, AfterValidator(gfx.checked)]


class Strict(BaseModel):
    """Frozen, no coercion, and an unknown key is an error that names the nearest known one."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                hint = suggestion(str(key), known)
                raise PydanticCustomError("unknown_key", "unknown key '{key}'; {hint}", {"key": key, "hint": hint})
        return data


class Evidence(Strict):
    """Where a statement comes from. `sources` are addresses, issue numbers or file names."""

    sources: list[Text] = Field(min_length=1)
    confidence: Confidence
    date: Date


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


class Official(Strict):
    """AMD's own support of an architecture, as ROCm versions; `until` is the last one that lists it."""

    since: VersionText | None = None
    until: VersionText | None = None
    note: Text | None = None
    evidence: Evidence

    def covers(self, rocm: str | None) -> bool:
        """Say whether AMD lists the architecture for this ROCm version."""
        if rocm is None or self.since is None or Version(rocm) < Version(self.since):
            return False
        return self.until is None or Version(rocm) <= Version(self.until)


class Architecture(Strict):
    """A GPU instruction set and the cards people know it by."""

    family: Text
    cards: list[Text] = Field(min_length=1)
    official: Official


class Wheel(Strict):
    """One wheel file and the hash it must have. `index` says who serves it."""

    name: Text
    version: VersionText
    sha256: Sha256
    index: Literal["python", "pytorch"]
    sources: list[Text] = Field(min_length=1)
    confidence: Confidence


class Release(Strict):
    """One build of torch: who serves it, for which Pythons, with device code for which architectures.

    `pins` are version ranges that this torch asks of other packages.
    """

    torch: VersionText
    rocm: VersionText | None
    index: Text
    pythons: list[VersionText]
    architectures: list[GfxName]
    pins: dict[Text, Text] = Field(default_factory=dict)
    evidence: Evidence

    @property
    def name(self) -> str:
        """`rocm6.3-torch2.7.1`, or `cpu-torch2.13.0` for the build with no accelerator."""
        return f"{'rocm' + self.rocm if self.rocm else 'cpu'}-torch{self.torch}"


class Selector(Strict):
    """Which combinations a rule or a variable speaks of; an axis left out matches all."""

    architectures: list[GfxName] | None = None
    torch: RangeText | None = None
    rocm: RangeText | None = None

    def matches(self, *, architecture: str | None, torch: str, rocm: str | None) -> bool:
        """Say whether a combination falls under this selector. A CPU build has no `rocm`."""
        if self.architectures is not None and architecture not in self.architectures:
            return False
        return _within(torch, self.torch) and _within(rocm, self.rocm)


def _within(version: str | None, bounds: str | None) -> bool:
    if bounds is None:
        return True
    return version is not None and SpecifierSet(bounds).contains(version, prereleases=True)


class Variable(Strict):
    """An environment variable that images set, with the reason for it."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
    value: str
    when: Selector
    why: Text
    evidence: Evidence


class CellEntry(Strict):
    """A cell as written in the file: names only. `Matrix.cells` gives it resolved."""

    release: Text
    architecture: GfxName | None
    base: Text
    recommended: bool = False
    why: Text
    evidence: Evidence

    @property
    def name(self) -> str:
        """The release's name and the architecture; made from data, never taken apart again."""
        return f"{self.release}-{self.architecture}" if self.architecture else self.release


class Rule(Strict):
    """What is known of a range of combinations, in our words, with its evidence."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")]
    when: Selector
    verdict: Verdict
    reason: Text
    evidence: Evidence
    expires: Date


class Cell(BaseModel):
    """A cell with everything its name stands for: what is rendered, built and run."""

    model_config = ConfigDict(frozen=True)

    name: str
    release: Release
    architecture: str | None
    cards: tuple[str, ...]
    base: Base
    recommended: bool
    official: bool
    why: str
    evidence: Evidence
    environment: tuple[Variable, ...]
    rules: tuple[Rule, ...]
    wheels: tuple[tuple[str, Wheel], ...]

    @property
    def python(self) -> str:
        """The Python version of the image, such as 3.12: the one its base brings."""
        return self.base.python

    @property
    def broken_by(self) -> tuple[Rule, ...]:
        """The rules that call this combination broken."""
        return tuple(rule for rule in self.rules if rule.verdict == "broken")


class Matrix(Strict):
    """The whole file. `cells` are resolved; `cell_entries` are as written."""

    schema_version: Literal[1] = Field(alias="schema")
    bases: dict[str, Base]
    architectures: dict[GfxName, Architecture]
    releases: list[Release]
    environment: list[Variable]
    cell_entries: list[CellEntry] = Field(alias="cells", min_length=1)
    rules: list[Rule]
    wheels: dict[str, Wheel]
    locks: dict[str, dict[VersionText, list[Text]]]

    @property
    def release_by_name(self) -> dict[str, Release]:
        """Releases under their made names."""
        return {release.name: release for release in self.releases}

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, resolved, in the order of the file."""
        releases = self.release_by_name
        return tuple(self._resolved(entry, releases[entry.release]) for entry in self.cell_entries)

    def cell(self, name: str) -> Cell:
        """Return one cell. Raises RM010 with the nearest names when there is none."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        hint = suggestion(name, [entry.name for entry in self.cell_entries])
        raise RocmatrixError("RM010", what=f"there is no cell {name!r}", where="matrix.yaml", next=hint)

    def for_python(self, cell: Cell, python: str) -> Cell | None:
        """Return the cell with the wheels of another Python, or None where these are not locked."""
        files = self.locks.get(cell.release.name, {}).get(python)
        if files is None:
            return None
        base = cell.base.model_copy(update={"python": python})
        return cell.model_copy(update={"base": base, "wheels": tuple((file, self.wheels[file]) for file in files)})

    def _resolved(self, entry: CellEntry, release: Release) -> Cell:
        axes: dict[str, Any] = {
            "architecture": entry.architecture,
            "torch": release.torch,
            "rocm": release.rocm,
        }
        base = self.bases[entry.base]
        architecture = self.architectures[entry.architecture] if entry.architecture else None
        files = self.locks.get(release.name, {}).get(base.python, [])
        return Cell(
            name=entry.name,
            release=release,
            architecture=entry.architecture,
            cards=tuple(architecture.cards) if architecture else (),
            base=base,
            recommended=entry.recommended,
            official=bool(architecture and architecture.official.covers(release.rocm)),
            why=entry.why,
            evidence=entry.evidence,
            environment=tuple(v for v in self.environment if v.when.matches(**axes)),
            rules=tuple(rule for rule in self.rules if rule.when.matches(**axes)),
            wheels=tuple((file, self.wheels[file]) for file in files),
        )
