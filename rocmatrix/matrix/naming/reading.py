"""A typed card name as read: exact identifiers, models, families, and what cannot be served."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.naming import device_ids, text
from rocmatrix.matrix.naming.lookup import Found, Index, Model, index_of
from rocmatrix.matrix.naming.vocabulary import LINES, NO_GRAPHICS, OLDER, OTHER_MAKERS, UNITS_OF_VEGA, UNSERVED

_FAMILY = re.compile(r"\b([rc]dna|gcn)\s*-?\s*(\d(?:\.5)?)?(?![\w.])")
_SERIES = re.compile(r"\b(?:(?:rx|radeon)\s*)+([5679])000(?:\s*-?\s*series)?(?![\w.])|\b([5679])000\s*-?\s*series\b")
# TheRock's families of targets, as its wheels and indexes are called, and LLVM's generic processors.
_TARGETS = re.compile(r"\b(gfx\d{1,3})x(?:-(all|dgpu|igpu|dcgpu))?\b")
_GENERIC = re.compile(r"\bgfx\d+(?:-\d)?-generic\b")
_FIRST_SILICON = ("gfx940", "gfx941")
_WITH_ITS_GPU = re.compile(r"\s*(?:\bw/|\bwith\b)\s*")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a name states.

    `sets` are the architectures that each part allows, `rows` the names behind them. `open` has words that may make it
    another model; `unserved` an architecture without a release, or older cards; `other` another maker's name.
    """

    sets: tuple[frozenset[str], ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    models: tuple[tuple[Model, ...], ...] = ()
    open: tuple[str, ...] = ()
    unserved: str | None = None
    other: str | None = None

    @property
    def agreed(self) -> frozenset[str]:
        """The architectures that every part allows."""
        return frozenset.intersection(*self.sets) if self.sets else frozenset()

    @property
    def architecture(self) -> str | None:
        """The one architecture that a name states, None where it states none, several, or one without a release."""
        sound = len(self.agreed) == 1 and not (self.open or self.unserved)
        return next(iter(self.agreed)) if sound else None


def read(architectures: Mapping[str, Architecture], name: str) -> Reading:
    """Return what a name states, by its identifiers where it has any, else by its words."""
    plain = text.plain(name)
    if vendor := text.of_another_maker(plain):
        return Reading(other=vendor)
    known = {number: gfx for number in text.device_ids(plain) if (gfx := device_ids.architecture(number))}
    if known:  # one of a card newer than the table says nothing: the words may
        return _by_id(architectures, known)
    if unserved := _unserved(architectures, plain):
        return Reading(unserved=unserved)
    return _by_words(architectures, plain)


def processor_of(architectures: Mapping[str, Architecture], name: str) -> str | None:
    """Return the processor of "PROCESSOR w/ GRAPHICS" that no list has, None where it is known or not so written."""
    first, *rest = _WITH_ITS_GPU.split(text.plain(name))
    known = index_of(architectures).read(text.words_of(first)).hits if rest else []
    return first.strip() if rest and first.strip() and not known else None


def _by_id(architectures: Mapping[str, Architecture], found: Mapping[int, str]) -> Reading:
    absent = [gfx for gfx in found.values() if gfx not in architectures]
    if absent:
        return Reading(unserved=absent[0])
    rows = tuple((f"1002:{number:04x}", gfx) for number, gfx in found.items())
    return Reading(sets=tuple(frozenset([gfx]) for _, gfx in rows), rows=rows)


def _unserved(architectures: Mapping[str, Architecture], plain: str) -> str | None:
    """Return what no release was built for, by processor, by name, or as older than GCN 3."""
    targets = text.targets(plain)
    if targets:
        return next((gfx for gfx in targets if gfx not in architectures), None)
    named = next((gfx for gfx, pattern in UNSERVED.items() if pattern.search(plain)), None)
    return named or ("a card before GCN 3" if OLDER.search(plain) else None)


def _by_words(architectures: Mapping[str, Architecture], plain: str) -> Reading:
    index, targets = index_of(architectures), text.targets(plain)
    parts = _parts(index, NO_GRAPHICS.sub(lambda found: _kept(index, found[0]), plain))
    hits = [tuple(models) for part in parts for models in part.hits]
    if any(part.laptop for part in parts):
        hits = [_with_laptop_forms(index, models) for models in hits]
    rows = [(gfx, gfx) for gfx in targets] + [(m.name, m.gfx) for models in hits for m in models]
    sets = [frozenset([gfx]) for gfx in targets] + [frozenset(m.gfx for m in models) for models in hits]
    for label, family in _families(architectures, plain):
        sets.append(family)
        rows += [(label, gfx) for gfx in sorted(family)]
    exact = bool(targets) or any(map(_names_a_chip, parts))
    other = OTHER_MAKERS.search(plain)
    foreign = (other[0],) if other and any(map(_may_be_another_makers, parts)) else ()
    return Reading(
        sets=tuple(sets), rows=tuple(dict.fromkeys(rows)), models=tuple(hits),
        open=foreign + (() if exact else _open(parts)), other=other[0] if other else None,
    )  # fmt: skip


def _chips(part: Found) -> list[tuple[str, ...]]:
    return [model.core for models in part.hits for model in models if model.chip]


def _names_a_chip(part: Found) -> bool:
    """Return whether a part names a chip beyond doubt: by a word, or by a number behind one of AMD's lines."""
    return any(core[0].isalpha() or part.lines - {"graphics"} for core in _chips(part))


def _may_be_another_makers(part: Found) -> bool:
    """Return whether a part has a chip that another maker's card may be called, and no line of AMD's: 780M, Phoenix."""
    return any(len(core) == 1 or core[0].isdigit() for core in _chips(part)) and not part.lines - {"graphics"}


def _kept(index: Index, processor: str) -> str:
    """Return a processor's name where it is known to have graphics, else a separator: it is no part of the answer."""
    return processor if index.read(text.words_of(processor)).hits else f" ; {processor.split(maxsplit=1)[0]} ; "


def _parts(index: Index, plain: str) -> list[Found]:
    found: list[Found] = []
    lines, number = frozenset[str](), None
    for words in text.segments(plain):
        own = {word.text for word in words} & LINES
        part = _part(index, words, carried=frozenset() if own else lines, number=number)
        found.append(part)
        lines = frozenset(own) or lines
        last = part.hits[-1][0].core if part.hits else ()
        number = next((word for word in last if word.isdigit()), number)
    return found


def _part(index: Index, words: list[text.Word], *, carried: frozenset[str], number: str | None) -> Found:
    """Return what a part states with the lines of the part before, else by itself: an MI50 behind a comma is no RX.

    A processor is not looked for without them: the 7800X3D in "RX 7900 XTX, 7800X3D" is not the card.
    """
    part = index.read(words, carried=carried, number=number)
    if part.hits or not carried:
        return part
    alone = index.read(words, number=number)
    return part if any(model.ryzen for models in alone.hits for model in models) else alone


def _open(parts: list[Found]) -> tuple[str, ...]:
    """Return the words that may make another model of it: those next to a hit, or all where there is no hit."""
    any_hit = any(part.hits for part in parts)
    return tuple(word for part in parts if part.hits or part.lines or not any_hit for word in part.unexplained)


def _with_laptop_forms(index: Index, models: tuple[Model, ...]) -> tuple[Model, ...]:
    """Return a desktop card's models with those of its laptop forms: an RX 6800 of a laptop may be an M or an S."""
    core = models[0].core
    if models[0].ryzen or models[0].chip or len(core) > 1:
        return models
    return (*models, *(m for letter in ("m", "s") for m in index.models.get((*core, letter), [])))


def _families(architectures: Mapping[str, Architecture], plain: str) -> list[tuple[str, frozenset[str]]]:
    """Return the families and series that a text names, with their architectures."""
    found = [(f[0].strip(), _family(architectures, f[1], f[2])) for f in _FAMILY.finditer(plain)]
    series = [(f[0].strip(), _series(architectures, f[1] or f[2])) for f in _SERIES.finditer(plain)]
    units = UNITS_OF_VEGA.search(plain)
    vega = [(units[0], frozenset(["gfx902", "gfx90c"]))] if units else []
    targets = [(f[0], _targets(architectures, f[1], f[2])) for f in _TARGETS.finditer(plain)]
    generic = [(f[0], _generic(architectures, f[0])) for f in _GENERIC.finditer(plain)]
    return [(label, members) for label, members in (*found, *series, *vega, *targets, *generic) if members]


def _targets(architectures: Mapping[str, Architecture], stem: str, kind: str | None) -> frozenset[str]:
    """Return the processors of a family of TheRock's: gfx110X-dgpu is gfx1100 to gfx1102, without gfx1103."""
    found = [gfx for gfx in architectures if gfx[:-1] == stem and gfx not in _FIRST_SILICON]
    if kind == "dcgpu":
        found = [gfx for gfx in found if architectures[gfx].family.startswith("CDNA")]
    elif kind in ("dgpu", "igpu"):
        found = [gfx for gfx in found if architectures[gfx].integrated == (kind == "igpu")]
    return frozenset(found)


def _generic(architectures: Mapping[str, Architecture], name: str) -> frozenset[str]:
    return frozenset(gfx for gfx, entry in architectures.items() if entry.generic == name and gfx not in _FIRST_SILICON)


def _family(architectures: Mapping[str, Architecture], kind: str, generation: str | None) -> frozenset[str]:
    family = f"{kind.upper()} {generation}" if generation not in (None, "1") else kind.upper()
    if kind == "gcn":
        return frozenset(["gfx803"] if generation in ("3", "4") else [])
    return frozenset(
        gfx for gfx, entry in architectures.items() if entry.family == family and gfx not in _FIRST_SILICON
    )


def _series(architectures: Mapping[str, Architecture], thousands: str) -> frozenset[str]:
    """Return the architectures with a desktop card of a series: RX 7000 is gfx1100 to gfx1102."""
    card = re.compile(rf"radeon rx {thousands}\d{{3}}\b(?! ?[ms]\b)", re.IGNORECASE)
    return frozenset(gfx for gfx, entry in architectures.items() if any(card.search(name) for name in entry.cards))
