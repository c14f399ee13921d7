"""From what people call a card to its architecture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.runtime.errors import RocmatrixError, suggestion

MOST_SHOWN = 12
_MAKER_WORDS = re.compile(r"\W*\((tm|r)\)|\b(amd|radeon|instinct|ryzen|graphics)\b|[^a-z0-9+]+")
# What tools add to a name: 20GB of memory, and the features of a target, as in gfx906:sramecc+:xnack-.
_MEMORY = re.compile(r"\b\d+\s*gi?b\b")
_TARGET = re.compile(r"^(gfx[0-9a-f]+)(:[a-z]+[+-])+$")
# lspci gives a chip, and in brackets every card that is made of it.
_CHIP = re.compile(r"\[([^\[\]]+)\]\s*(\(rev \w+\))?\s*$")
# What a person may leave out as well, where the rest still names one architecture.
_SERIES_WORDS = re.compile(r"\b(rx|pro|ai|series|vf|mxgpu|oem)\b|\+")  # a virtual function (VF, MxGPU) is of its card
# What makers of boards add.
_BOARD_WORDS = re.compile(
    r"\b(sapphire|nitro|pulse|pure|toxic|powercolor|red devil|red dragon|hellhound|fighter|xfx|merc ?\d*|swift|"
    r"qick ?\d*|speedster|asrock|phantom gaming|taichi|steel legend|challenger|gigabyte|aorus|windforce|gaming|eagle|"
    r"asus|tuf|rog strix|msi|mech|trio|yeston|oc|reference|50th anniversary)\b\+?"
)
# First silicon, which only a person who names it has.
_FIRST_SILICON = re.compile(r"\brevision 0\b")
# What no release was built for, by LLVM's AMDGPUUsage.rst; the BC-250 by ROCm/rocm-libraries PR #8838.
_UNSERVED = {
    "gfx1013": re.compile(r"\bbc-?250\b|\bcyan skillfish\b"),
    "gfx902": re.compile(r"\braven\b|\bpicasso\b"),
    "gfx701": re.compile(r"\bhawaii\b|\br9 [23]9[05]x?\b"),
}
_NUMBER = re.compile(r"\d{3}|mi\d{2}")
_OTHER_MAKERS = re.compile(r"\b(nvidia|geforce|quadro|tesla|[rg]tx|[abhl]\d{2,3}|gb200|intel|arc)\b")


def architecture_of(architectures: Mapping[str, Architecture], name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT".

    Raises RM010 with the nearest names for an unknown one, and with the candidates for one that could be several
    cards, such as "7900".
    """
    if name in architectures:
        return name
    if target := _TARGET.match(name.strip().casefold()):
        return architecture_of(architectures, target[1])
    chip = _CHIP.search(name)
    parts = chip[1].split("/") if chip else name.split(" / ")
    if chip or len(parts) > 1:
        return _of_all(architectures, name, parts)
    known = [(card, gfx) for gfx, entry in architectures.items() for card in entry.names]
    exact = [row for row in known if _folded(row[0]) == _folded(name)]
    exact = exact or [row for row in known if _short(row[0]) == _short(name)]
    if len({gfx for _, gfx in exact}) == 1:
        return exact[0][1]
    whole = [] if exact else [row for row in known if _has_words_of(row[0], name)]
    if len({gfx for _, gfx in whole}) == 1:
        return whole[0][1]
    candidates = exact or [row for row in known if _short(name) and _short(name) in _short(row[0])]
    if candidates:
        raise _ambiguous(name, candidates)
    plain = _BOARD_WORDS.sub(" ", name.casefold())
    if plain.strip() and plain != name.casefold():
        return architecture_of(architectures, plain)
    raise _unknown(architectures, name, [card for card, _ in known])


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


def _has_words_of(card: str, name: str) -> bool:
    """Return whether a name is a card's with words left out around it: "HX 370", "7840HS", and "MI350" for MI350X.

    The words are next to each other and whole, but for letters at the end of the last, and one has the model's number.
    """
    typed, held = _words(name), _words(card)
    if not any(map(_NUMBER.search, typed)) or (_FIRST_SILICON.search(card) and not _FIRST_SILICON.search(name)):
        return False
    *first, last = typed
    for start in range(len(held) - len(typed) + 1):
        end = held[start + len(first)]
        rest = end.removeprefix(last)
        if held[start : start + len(first)] == first and end.startswith(last) and (not rest or rest.isalpha()):
            return True
    return False


def _words(name: str) -> list[str]:
    plain = _SERIES_WORDS.sub(" ", _MEMORY.sub(" ", name.casefold()))
    return [word for word in _MAKER_WORDS.sub(" ", plain).split() if word]


def _unknown(architectures: Mapping[str, Architecture], name: str, cards: list[str]) -> RocmatrixError:
    what = f"no card or architecture is known as {name!r}"
    if unserved := next((gfx for gfx, pattern in _UNSERVED.items() if pattern.search(name.casefold())), None):
        return RocmatrixError("RM010", what=f"{name!r} is a {unserved}, for which no release was built")
    if other := _OTHER_MAKERS.search(name.casefold()):
        advice = f"{other[0]!r} is a name of another maker's; name an AMD card, or take --gpu cpu"
        return RocmatrixError("RM010", what=what, next=advice)
    return RocmatrixError("RM010", what=what, next=suggestion(name, [*architectures, *cards]))


def _ambiguous(name: str, candidates: list[tuple[str, str]]) -> RocmatrixError:
    shown = [f"{card} ({gfx})" for card, gfx in candidates[:MOST_SHOWN]]
    more = f", and {len(candidates) - MOST_SHOWN} more" if len(candidates) > MOST_SHOWN else ""
    what = f"{name!r} could be {', '.join(shown)}{more}"
    return RocmatrixError("RM010", what=what, next="name one of them in full, or give the architecture")


def _folded(name: str) -> str:
    return _MAKER_WORDS.sub("", _MEMORY.sub("", name.casefold()))


def _short(name: str) -> str:
    return _folded(_SERIES_WORDS.sub("", _MEMORY.sub("", name.casefold())))
