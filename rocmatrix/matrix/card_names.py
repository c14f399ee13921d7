"""From what people call a card to its architecture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.runtime.errors import RocmatrixError, suggestion

MOST_SHOWN = 12
_MAKER = re.compile(r"\b(amd|radeon|instinct|ryzen|graphics)\b")
_MAKER_WORDS = re.compile(_MAKER.pattern + r"|[^a-z0-9+]+")
# What tools add to a name: 20GB of memory, and the features of a target, as in gfx906:sramecc+:xnack-.
_MEMORY = re.compile(r"\b(?:\d+\s*gi?b|\d{1,3}\s*g)\b")
_TARGET = re.compile(r"^(gfx[0-9a-f]+)(:[a-z]+[+-])+$|\b(gfx[0-9a-f]{3,4})\b")
# lspci gives a chip, and in brackets every card that is made of it.
_CHIP = re.compile(r"\[([^\[\]]+)\]\s*(\(rev \w+\))?\s*$")
# What a person may leave out as well, where the rest still names one architecture.
_SERIES_WORDS = re.compile(r"\b(rx|pro|ai)\b")
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
# Tools and their copies write "CPU w/ GPU", "4x CARD" and "Radeon(TM)".
_AND_ITS_GPU = re.compile(r"\s+(?:w/|with)\s*")
_COUNT = re.compile(
    r"^\s*(?:\d{1,2}\s?[x\u00d7]|dual|two|pair of)\s+(?=\S)|(?<=\S)\s+\(?(?:x\s?\d{1,2}|\d{1,2}\s?x)\)?\s*$"
)
_MARKS = re.compile(r"\((?:tm|r|c)\)|[™®]")
_PIECE = re.compile(r"[a-z]+|\d+")
_SPELLED = {"ds": ("dual", "slot")}
# What may stand around a card's name and changes nothing: who made the board or the machine, how it is passed through.
_BOARDS = """
sapphire nitro pulse pure toxic powercolor red devil hellhound fighter reaper xfx merc 310 319 speedster qick swft
mercury quicksilver asrock challenger taichi phantom gaming steel legend asus tuf rog strix dual msi mech trio
gigabyte aorus eagle oc edition creator acer predator bifrost framework laptop 13 16 ally legion go oem reference
card gpu vf oam gddr 6 pcie mxgpu series reference 50 th anniversary
"""
_AROUND = frozenset(
    [*_BOARDS.split(), "amd", "radeon", "instinct", "ryzen", "graphics", "vega", "ati", "rx", "pro", "ai"]
)


def architecture_of(architectures: Mapping[str, Architecture], name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT".

    Raises RM010 with the nearest names for an unknown one, and with the candidates for one that could be several
    cards, such as "7900".
    """
    if name in architectures:
        return name
    target = _TARGET.search(name.strip().casefold())
    if target and (gfx := target[1] or target[3]) in architectures:
        return gfx
    if several := _several(name):
        return _of_all(architectures, name, several)
    known = [(card, gfx) for gfx, entry in architectures.items() for card in entry.names]
    exact = [row for one in _readings(name) for row in _meant(known, one)]
    if len({gfx for _, gfx in exact}) == 1:
        return exact[0][1]
    whole = [] if exact else [row for row in known if _has_words_of(row[0], name)]
    if len({gfx for _, gfx in whole}) == 1:
        return whole[0][1]
    candidates = exact or [row for row in known if _short(name) and _short(name) in _short(row[0])]
    if candidates:
        raise _ambiguous(name, candidates)
    raise _unknown(architectures, name, [card for card, _ in known])


def card_of(architectures: Mapping[str, Architecture], name: str | None, architecture: str | None) -> str | None:
    """Return the card of `architecture` that a name means, None where it means the chip or the architecture.

    Of several cards in one name, as lspci gives them, the first stands for all.

    Args:
        architectures: all architectures by gfx name.
        name: name as given: a card, a chip or an architecture.
        architecture: gfx name that the result must belong to.
    """
    if name is None or architecture is None or name in architectures:
        return None
    entry = architectures[architecture]
    exact = [card for card in entry.names if card.casefold() == name.strip().casefold()]
    known = [(card, architecture) for card in entry.names]
    readings = _several(name) or _readings(name)
    exact = exact or [card for one in readings for card, _ in _meant(known, one)]
    if (
        exact
        and exact[0] in entry.chips
        and len(readings) > 1
        and not _several(name)
        and not _meant(known, readings[0])
    ):
        return readings[0].strip()  # a processor that no list names, with its GPU
    return exact[0] if exact and exact[0] not in entry.chips else None


def same(one: str, other: str) -> bool:
    """Return whether two names are one card's, whatever words of the maker's they bear."""
    return bool(_folded(one)) and _folded(one) == _folded(other)


def _several(name: str) -> list[str]:
    """Return the cards of a name that lists several: in the brackets of lspci, or between slashes."""
    chip = _CHIP.search(name)
    parts = (chip[1] if chip else _AND_ITS_GPU.sub(" ", name)).split("/")
    return parts if chip or (len(parts) > 1 and all(part.strip() for part in parts)) else []


def _readings(name: str) -> list[str]:
    """Return what a name may be read as: the whole without counts and marks, or a processor and its GPU."""
    whole = _COUNT.sub("", _MARKS.sub(" ", name.casefold()))
    return [part for part in _AND_ITS_GPU.split(whole) if part.strip()] or [whole]


def _meant(known: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """Return the cards of exactly this name; else those whose name is in it, with nothing around it that changes it."""
    exact = [row for row in known if same(row[0], name)]
    exact = exact or [row for row in known if _short(name) and _short(row[0]) == _short(name)]
    if exact:
        return exact
    typed = _pieces(name)
    held = [(row, _pieces(_SERIES_WORDS.sub("", _MAKER.sub("", row[0].casefold())))) for row in known]
    found = [(row, pieces) for row, pieces in held if pieces and _around(typed, pieces) <= _AROUND]
    longest = max((len(pieces) for _, pieces in found), default=0)
    best = [row for row, pieces in found if len(pieces) == longest]
    return [row for row in best if set(_pieces(_MAKER.sub("", row[0].casefold()))) <= set(typed)] or best


def _pieces(name: str) -> tuple[str, ...]:
    """Return the runs of letters and of digits in a name: rx7900xtx and RX 7900 XTX give the same."""
    found = _PIECE.findall(_MEMORY.sub("", name.casefold()))
    return tuple(word for piece in found for word in _SPELLED.get(piece, (piece,)))


def _around(typed: tuple[str, ...], pieces: tuple[str, ...]) -> frozenset[str]:
    """Return what stands around `pieces` in `typed`; what no card's name has where they are not in it."""
    for start in range(len(typed) - len(pieces) + 1):
        if typed[start : start + len(pieces)] == pieces:
            return frozenset((*typed[:start], *typed[start + len(pieces) :]))
    return frozenset({""})


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
    plain = _SERIES_WORDS.sub(" ", _MEMORY.sub(" ", _MARKS.sub(" ", name.casefold()))).replace("+", " ")
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
