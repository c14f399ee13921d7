"""From what people call a card to its architecture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.runtime.errors import RocmatrixError, suggestion

MOST_SHOWN = 12
_MAKER_WORDS = re.compile(r"\b(amd|radeon|instinct|ryzen|graphics)\b|[^a-z0-9+]+")
# What a person may leave out as well, where the rest still names one architecture.
# What tools add to a name: 20GB of memory, and the features of a target, as in gfx906:sramecc+:xnack-.
_MEMORY = re.compile(r"\b\d+\s*gi?b\b")
_TARGET = re.compile(r"^(gfx[0-9a-f]+)(:[a-z]+[+-])+$")
# lspci gives a chip, and in brackets every card that is made of it.
_CHIP = re.compile(r"\[([^\[\]]+)\]\s*(\(rev \w+\))?\s*$")
_SERIES_WORDS = re.compile(r"\b(rx|pro|ai)\b")


def architecture_of(architectures: Mapping[str, Architecture], name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT".

    Raises RM010 with the nearest names for an unknown one, and with the candidates for one that could be several
    cards, such as "7900".
    """
    if name in architectures:
        return name
    if target := _TARGET.match(name.strip().casefold()):
        return architecture_of(architectures, target[1])
    if chip := _CHIP.search(name):
        return _of_all(architectures, name, chip[1].split("/"))
    known = [(card, gfx) for gfx, entry in architectures.items() for card in entry.names]
    exact = [row for row in known if _folded(row[0]) == _folded(name)]
    exact = exact or [row for row in known if _short(row[0]) == _short(name)]
    if len({gfx for _, gfx in exact}) == 1:
        return exact[0][1]
    candidates = exact or [row for row in known if _short(name) and _short(name) in _short(row[0])]
    if candidates:
        raise _ambiguous(name, candidates)
    hint = suggestion(name, [*architectures, *(card for card, _ in known)])
    raise RocmatrixError("RM010", what=f"no card or architecture is known as {name!r}", next=hint)


def card_of(architectures: Mapping[str, Architecture], name: str | None, architecture: str | None) -> str | None:
    """Return the card of `architecture` that a name means, None where it means the chip or the architecture.

    Args:
        architectures: all architectures by gfx name.
        name: name as given: a card, a chip or an architecture.
        architecture: gfx name that the result must belong to.
    """
    if name is None or architecture is None or name in architectures:
        return None
    entry = architectures[architecture]
    exact = [card for card in entry.names if card.casefold() == name.strip().casefold()]
    exact = exact or [card for card in entry.names if same(card, name)]
    exact = exact or [card for card in entry.names if _short(card) and _short(card) == _short(name)]
    return exact[0] if exact and exact[0] not in entry.chips else None


def same(one: str, other: str) -> bool:
    """Return whether two names are one card's, whatever words of the maker's they bear."""
    return bool(_folded(one)) and _folded(one) == _folded(other)


def _of_all(architectures: Mapping[str, Architecture], name: str, cards: list[str]) -> str:
    """Return the one architecture of all cards that lspci names; each after the first may lack the maker's words."""
    found = {architecture_of(architectures, card): card for card in cards}
    if len(found) > 1:
        raise _ambiguous(name, [(card, gfx) for gfx, card in found.items()])
    return next(iter(found))


def _ambiguous(name: str, candidates: list[tuple[str, str]]) -> RocmatrixError:
    shown = [f"{card} ({gfx})" for card, gfx in candidates[:MOST_SHOWN]]
    more = f", and {len(candidates) - MOST_SHOWN} more" if len(candidates) > MOST_SHOWN else ""
    what = f"{name!r} could be {', '.join(shown)}{more}"
    return RocmatrixError("RM010", what=what, next="name one of them in full, or give the architecture")


def _folded(name: str) -> str:
    return _MAKER_WORDS.sub("", _MEMORY.sub("", name.casefold()))


def _short(name: str) -> str:
    return _folded(_SERIES_WORDS.sub("", _MEMORY.sub("", name.casefold())))
