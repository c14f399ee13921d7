"""GPU instruction sets: the cards people know them by, what they can do, and who supports them."""

from __future__ import annotations

from typing import Annotated, Literal

from packaging.version import Version
from pydantic import Field, StringConstraints

from rocmatrix.matrix import gfx
from rocmatrix.matrix.statement import Evidence, Selector, Strict, Text, VersionText

IsaVersion = Annotated[str, StringConstraints(pattern=gfx.ISA_PATTERN)]


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


class Override(Strict):
    """What setting HSA_OVERRIDE_GFX_VERSION does on an architecture, and for which releases."""

    value: IsaVersion
    effect: Literal["helps", "harms", "nothing"]
    when: Selector = Selector()
    why: Text
    evidence: Evidence

    @property
    def stands_in(self) -> str:
        """The architecture whose code runs instead: gfx1030 for 10.3.0."""
        return gfx.from_isa_version(self.value)


class OtherNames(Strict):
    """Processors, code names and variants by which people know an architecture besides its cards."""

    names: list[Text] = Field(min_length=1)
    evidence: Evidence


class Architecture(Strict):
    """A GPU instruction set. `matrix_units` are the types its matrix instructions multiply; [] for none."""

    family: Text
    cards: list[Text]
    also: OtherNames | None = None
    integrated: bool
    matrix_units: list[Literal["fp16", "bf16"]]
    official: Official
    overrides: list[Override] = Field(default_factory=list)
    evidence: Evidence

    @property
    def names(self) -> tuple[str, ...]:
        """Every name a person may type for it."""
        return (*self.cards, *(self.also.names if self.also else ()))

    def override(self, *, torch: str, rocm: str | None) -> Override | None:
        """Return the override that helps this architecture with a release, None where none does."""
        fitting = (entry for entry in self.overrides if entry.effect == "helps")
        return next((o for o in fitting if o.when.matches(architecture=None, torch=torch, rocm=rocm)), None)
