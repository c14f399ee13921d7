"""AMD's own lists of supported cards, kept by ROCm line and by card, never by instruction set alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from rocmatrix.matrix.release import Final
from rocmatrix.matrix.statement import Evidence, GfxName, Strict, Text

Listing = Literal["listed", "maintained", "not listed", "not read"]


class SupportTable(Strict):
    """The cards that AMD lists for some ROCm lines, by architecture.

    `maintained` are those it calls deprecated: limited support, nothing new. Several tables may cover one line.
    """

    rocm: list[Final] = Field(min_length=1)
    listed: dict[GfxName, list[Text]]
    maintained: dict[GfxName, list[Text]] = Field(default_factory=dict)
    note: Text | None = None
    evidence: Evidence

    def cards(self, architecture: str) -> tuple[str, ...]:
        """Return the cards of an architecture that it lists, maintained ones last."""
        return (*self.listed.get(architecture, ()), *self.maintained.get(architecture, ()))

    def names(self, cards: Iterable[str]) -> bool:
        """Return whether it lists one of these cards."""
        given = set(cards)
        return any(given & set(self.cards(gfx)) for gfx in {*self.listed, *self.maintained})


@dataclass(frozen=True, kw_only=True)
class Support:
    """What AMD's lists state of an architecture, or of one card of it, with one ROCm line.

    `cards` are all the listed cards of the architecture, `tables` those that were read for the line.
    """

    listing: Listing
    cards: tuple[str, ...]
    tables: tuple[SupportTable, ...]

    @property
    def official(self) -> bool:
        """Whether the card is on the list; for an architecture, whether any card of it is."""
        return self.listing in ("listed", "maintained")

    def summary(self, architecture: str, card: str | None) -> str:
        """Return which cards of an architecture are listed, and whether `card` is one."""
        if not self.cards:
            return f"no card of {architecture} is listed"
        named = ", ".join(self.cards)
        if card is None:
            return f"listed are {named}{self._maintained}"
        return f"the {card} is listed{self._maintained}" if self.official else f"the {card} is not listed, {named} are"

    @property
    def _maintained(self) -> str:
        return ", in maintenance (AMD calls it deprecated)" if self.listing == "maintained" else ""

    @property
    def speaking(self) -> tuple[SupportTable, ...]:
        """The tables to cite: those that name a card of the architecture, else all that were read."""
        return tuple(table for table in self.tables if table.names(self.cards)) or self.tables


def support(
    tables: Iterable[SupportTable], *, architecture: str | None, rocm: str | None, card: str | None = None
) -> Support:
    """Return what the lists state. Without a `card` it is for the whole architecture.

    Args:
        tables: the lists of supported cards.
        architecture: gfx name; None for the CPU.
        rocm: ROCm version, such as "7.2"; None for a CPU build.
        card: name of one card; None for the whole architecture.
    """
    read = tuple(table for table in tables if rocm in table.rocm)
    if architecture is None or not read:
        return Support(listing="not read", cards=(), tables=read)
    listed = {name for table in read for name in table.listed.get(architecture, ())}
    cards = tuple(dict.fromkeys(name for table in read for name in table.cards(architecture)))
    matching = cards if card is None else tuple(name for name in cards if name == card)
    listing: Listing = "not listed"
    if matching:
        listing = "listed" if listed & set(matching) else "maintained"
    return Support(listing=listing, cards=cards, tables=read)
