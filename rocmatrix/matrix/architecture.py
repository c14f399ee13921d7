"""GPU instruction sets: the cards people know them by, and what they can do."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

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


class Autocast(Strict):
    """The 16-bit format whose matrix products the hardware itself computes, at more than the fp32 rate."""

    format: Literal["fp16", "bf16"]
    why: Text


class Peak(Strict):
    """Cards by parts of their names, with the compute units and the boost clock of one device as torch counts them.

    Without a source, the figures come from general knowledge of AMD's product pages.
    """

    cards: list[Text] = Field(min_length=1)
    units: int = Field(gt=0)
    mhz: int = Field(gt=0)
    source: Text | None = None


class Architecture(Strict):
    """A GPU instruction set. `matrix_units` are the types its matrix instructions multiply; [] for none.

    `elf` is the processor's number in a code object's flags, `generic` LLVM's processor whose code runs on it, too.
    `per_clock` are FLOPs of one unit and clock by number format, an FMA counted as two: with a card's peak they
    give what it computes at most. `memory_gib` are the sizes of memory by card, `memory_bandwidth` the maker's
    GB/s. `chips` are those of its names that mean the chip or its graphics, and so every card made of it.
    """

    family: Text
    cards: list[Text]
    also: OtherNames | None = None
    chips: list[Text] = Field(default_factory=list)
    integrated: bool
    matrix_units: list[Literal["fp16", "bf16"]]
    elf: int = Field(ge=0, le=0xFF)
    generic: str | None = None
    autocast: Autocast | None = None
    per_clock: dict[Literal["fp32", "fp16", "bf16"], int] | None = None
    memory_gib: dict[Text, list[int]] = Field(default_factory=dict)
    memory_bandwidth: dict[Text, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    peaks: list[Peak] = Field(default_factory=list)
    overrides: list[Override] = Field(default_factory=list)
    evidence: Evidence

    @model_validator(mode="after")
    def _peaks_have_rates(self) -> Self:
        if self.peaks and self.per_clock is None:
            raise PydanticCustomError("per_clock", "peaks need per_clock, the FLOPs of one unit and clock")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Every name a person may type for it."""
        return (*self.cards, *(self.also.names if self.also else ()))

    def override(self, *, torch: str, rocm: str | None) -> Override | None:
        """Return the override that helps this architecture with a release, None where none does."""
        fitting = (entry for entry in self.overrides if entry.effect == "helps")
        return next((o for o in fitting if o.when.matches(architecture=None, torch=torch, rocm=rocm)), None)
