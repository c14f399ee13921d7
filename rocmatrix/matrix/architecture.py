"""GPU instruction sets: the cards people know them by, and what they can do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rocmatrix.matrix import gfx
from rocmatrix.matrix.statement import Evidence, Selector, Strict, Text

IsaVersion = Annotated[str, StringConstraints(pattern=gfx.ISA_PATTERN)]


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
    """A GPU instruction set. `matrix_units` are the types its matrix instructions multiply; [] for none.

    `chips` are those of its names that mean the chip or its graphics, and so every card made of it.
    """

    family: Text
    cards: list[Text]
    also: OtherNames | None = None
    chips: list[Text] = Field(default_factory=list)
    integrated: bool
    matrix_units: list[Literal["fp16", "bf16"]]
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
