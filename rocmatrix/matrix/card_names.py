"""Architecture and card by a name as people type it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.naming.reading import Reading, processor_of, read
from rocmatrix.matrix.naming.text import core_of, plain, segments
from rocmatrix.matrix.naming.vocabulary import LINES, PLACES
from rocmatrix.runtime.errors import RocmatrixError, nearest, suggestion

MOST_SHOWN = 12


def architecture_of(architectures: Mapping[str, Architecture], name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT".

    A PCI id or a gfx name within the text decides; else every model, chip and family in it, which must agree. Raises
    RM010 with the candidates where several architectures are left or none, with the nearest names for an unknown one,
    and with the reason for another maker's card or one that no release was built for.
    """
    if name in architectures:
        return name
    reading = read(architectures, name)
    if reading.unserved:
        raise without_release(name, reading.unserved)
    if (gfx := reading.architecture) in architectures:
        return str(gfx)
    if PLACES.fullmatch(name.strip().casefold()):
        raise _place(name)
    if reading.open or not reading.sets:
        raise _unknown(architectures, name, reading)
    raise _ambiguous(name, list(reading.rows))


@dataclass(frozen=True, kw_only=True)
class Several:
    """What a name of several architectures may mean: names of one each, and whether each part names one of them."""

    names: tuple[str, ...]
    names_all: bool


def several(architectures: Mapping[str, Architecture], name: str) -> Several | None:
    """Return what a name of several architectures may mean; None where it means one, or is unknown.

    The names are cards where the name has cards, else architectures, those without a release among them. All are meant
    by "6900XT and 7900XTX", one of them by "Vega 8".

    Args:
        architectures: all architectures by gfx name.
        name: name as typed.
    """
    reading = None if name in architectures else read(architectures, name)
    if reading is None or reading.other or reading.unserved or _is_open(reading):
        return None
    several = len(reading.agreed) > 1 or (not reading.agreed and bool(reading.rows))
    return _several(architectures, reading) if several else None


def _is_open(reading: Reading) -> bool:
    """Return whether words may make it another model, besides those of a family: the 7000 of an RX 7000 series."""
    return any(not any(word in label for label, _ in reading.rows) for word in reading.open)


def _several(architectures: Mapping[str, Architecture], reading: Reading) -> Several:
    rows = [(card, gfx) for card, gfx in reading.rows if not reading.agreed or gfx in reading.agreed]
    rows = _without_processors(architectures, reading, rows)
    own = {gfx: sum(gfx == other for _, other in rows) for _, gfx in rows}
    names = [card if own[gfx] == 1 and _is_of_one(architectures, card) else gfx for card, gfx in rows]
    return Several(names=tuple(dict.fromkeys(names)), names_all=all(len(each) == 1 for each in reading.sets))


def _without_processors(
    architectures: Mapping[str, Architecture], reading: Reading, rows: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the rows without processors where there is a card: in "RX 7900 XTX, Ryzen 9 7950X3D" the card computes."""
    processors = {model.name for models in reading.models if all(m.ryzen for m in models) for model in models}
    cards = [(card, gfx) for card, gfx in rows if gfx in architectures and not architectures[gfx].integrated]
    return [row for row in rows if row[0] not in processors] if cards else rows


def _is_of_one(architectures: Mapping[str, Architecture], card: str) -> bool:
    return sum(card in entry.names for entry in architectures.values()) == 1


def unserved(architectures: Mapping[str, Architecture], name: str) -> str | None:
    """Return the architecture, or the kind of card, of a name that no release was built for, None for any other.

    Args:
        architectures: all architectures by gfx name.
        name: name as typed.
    """
    return None if name in architectures else read(architectures, name).unserved


def without_release(name: str, kind: str) -> RocmatrixError:
    """Return the RM010 for a name whose architecture no release was built for.

    Args:
        name: name as typed.
        kind: what `unserved` returns for it.
    """
    what = f"{name!r} is {_a(kind)}, for which no release was built"
    return RocmatrixError("RM010", what=what, next="name another card, or take --gpu cpu: no wheel has code for it")


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
    if exact := next((n for n in architectures[architecture].names if n.casefold() == name.strip().casefold()), None):
        return None if exact in architectures[architecture].chips else exact
    hits = [[model for model in models if model.gfx == architecture] for models in read(architectures, name).models]
    cards = [models[0] for models in hits if models and not models[0].chip and len({m.core for m in models}) == 1]
    if cards:
        return cards[0].name
    return processor_of(architectures, name) if any(hits) else None


def same(one: str, other: str) -> bool:
    """Return whether two names are one card's, whatever words of the maker's they bear."""
    return bool(_model(one)) and _model(one) == _model(other)


def _model(name: str) -> str:
    """Return the model of a name in one spelling: without brands, sizes of memory and counts."""
    words = [word.text for part in segments(plain(name)) for word in part]
    return "".join(word for word in words if word not in LINES - {"rx", "pro", "ai"})


def _a(what: str) -> str:
    return what if what.startswith(("a ", "PCI")) else f"a {what}"


def _place(name: str) -> RocmatrixError:
    """Return the RM010 for what names a place in a machine, or all of its cards, and no kind of card."""
    advice = "--gpu auto takes this machine's card; --cards 0,1 chooses among its cards by the numbers of topology"
    return RocmatrixError("RM010", what=f"{name!r} names no kind of card", next=advice)


def _unknown(architectures: Mapping[str, Architecture], name: str, reading: Reading) -> RocmatrixError:
    what = f"no card or architecture is known as {name!r}"
    if reading.other:
        advice = f"{reading.other!r} is a name of another maker's; name an AMD card, or take --gpu cpu"
        return RocmatrixError("RM010", what=what, next=advice)
    known = [(card, gfx) for gfx, entry in architectures.items() for card in entry.names]
    if candidates := list(reading.rows) or _containing(known, name):
        return _ambiguous(name, candidates)
    return RocmatrixError("RM010", what=what, next=_nearest(architectures, name, [card for card, _ in known]))


def _nearest(architectures: Mapping[str, Architecture], name: str, cards: list[str]) -> str:
    """Return the nearest names, by the model alone where that has any: MI300Y is nearer to MI300X than to MI200."""
    by_model = {_model(card): card for card in cards}
    near = [by_model[model] for model in nearest(_model(name), by_model)]
    return f"did you mean {' or '.join(near)}?" if near else suggestion(name, [*architectures, *cards])


def _containing(known: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """Return the cards whose model holds what was typed as it stands."""
    typed = "".join(core_of(name))
    return [(card, gfx) for card, gfx in known if typed and typed in "".join(core_of(card))]


def _ambiguous(name: str, candidates: list[tuple[str, str]]) -> RocmatrixError:
    shown = [card if card == gfx else f"{card} ({gfx})" for card, gfx in candidates[:MOST_SHOWN]]
    more = f", and {len(candidates) - MOST_SHOWN} more" if len(candidates) > MOST_SHOWN else ""
    what = f"{name!r} could be {', '.join(shown)}{more}"
    return RocmatrixError("RM010", what=what, next="name one of them in full, or give the architecture")
