"""Values by kind, and the relations between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from rocmatrix.matrix import gfx

# version: ordered by its numbers; kernel: also equal as a whole; size: bytes, with K, M, G or T; word and words: small
# letters; gfx: architectures, also in dotted form; card: the architecture of a card's name; count: how many
# texts, rows: how many lines; listed: how many are named; highest: the largest of several numbers
Kind = Literal["version", "kernel", "size", "word", "words", "gfx", "card", "count", "rows", "listed", "highest"]
Cards = Callable[[str], str | None]
_NUMBERS = re.compile(r"\d{1,12}(?:\.\d{1,12}){0,5}")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]?)i?(?:b|bytes)?", re.IGNORECASE)
_GFX = re.compile(r"gfx[0-9a-f]{3,4}\b")
_DOTTED = re.compile(r"\d{1,2}\.\d{1,2}\.\d{1,2}")
_SEPARATORS = re.compile(r"[\s,;()=\[\]'\"]+")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, kw_only=True)
class Typed:
    """A value: what it equals, one item or several, and its place in an order where it has one."""

    items: frozenset[str]
    order: tuple[int, ...] | None = None


def typed(kind: Kind, text: str, cards: Cards) -> Typed | None:
    """Return a text as a value of a kind; None where it states none, such as a card of an unknown name.

    Args:
        kind: the kind of the value.
        text: as the transcript has it.
        cards: returns the architecture of a card's name.
    """
    found = _KINDS[kind](text, cards)
    return found if found.items else None


def _version(text: str, _: Cards) -> Typed:
    number = _NUMBERS.search(text)
    order = tuple(map(int, number[0].split("."))) if number else None
    return Typed(items=frozenset({text.strip()}) if order else frozenset(), order=order)


def _size(text: str, _: Cards) -> Typed:
    found = _SIZE.search(text)
    if found is None:
        return Typed(items=frozenset())
    size = int(float(found[1]) * _UNITS[found[2].lower()])
    return Typed(items=frozenset({str(size)}), order=(size,))


def _words(text: str, _: Cards) -> Typed:
    return Typed(items=frozenset(filter(None, _SEPARATORS.split(text.lower()))))


def _word(text: str, _: Cards) -> Typed:
    return Typed(items=frozenset(filter(None, [text.strip().lower()])))


def _gfx(text: str, _: Cards) -> Typed:
    names = set(_GFX.findall(text.lower()))
    with suppress(ValueError):
        names |= {gfx.from_isa_version(one) for one in _DOTTED.findall(text)}
    return Typed(items=frozenset(name for name in names if gfx.is_name(name)))


def _card(text: str, cards: Cards) -> Typed:
    name = cards(text)
    return Typed(items=frozenset({name} if name else ()))


def _listed(text: str, cards: Cards) -> Typed:
    names = _words(text, cards).items
    return Typed(items=frozenset({str(len(names))}), order=(len(names),))


def _highest(text: str, _: Cards) -> Typed:
    numbers = list(map(int, re.findall(r"\d{1,9}", text)))
    return Typed(items=frozenset(map(str, numbers[:1])), order=(max(numbers, default=0),))


_KINDS: Mapping[str, Callable[[str, Cards], Typed]] = {
    "version": _version, "kernel": _version, "size": _size, "word": _word, "words": _words, "gfx": _gfx, "card": _card,
    "count": _version, "rows": _version, "listed": _listed, "highest": _highest,
}  # fmt: skip
Relation = Callable[[Sequence[Typed], Sequence[Typed], int | None], bool]


def _items(values: Sequence[Typed]) -> frozenset[str]:
    return frozenset().union(*(value.items for value in values))


def _orders(values: Sequence[Typed], parts: int | None) -> set[tuple[int, ...]]:
    return {value.order[:parts] for value in values if value.order is not None}


def _generations(values: Sequence[Typed]) -> set[str]:
    """Return the major versions of architectures: code of another one never runs."""
    return {name[3:-2] for name in _items(values)}


def _shares(left: Sequence[Typed], right: Sequence[Typed], parts: int | None) -> bool:
    if parts is not None:
        return not _orders(left, parts).isdisjoint(_orders(right, parts))
    return not _items(left).isdisjoint(_items(right))


def _older(left: Sequence[Typed], right: Sequence[Typed], parts: int | None) -> bool:
    lower, upper = _orders(left, parts), _orders(right, parts)
    return bool(lower and upper) and max(lower) < min(upper)


# by their words in a condition; each holds for values that were read on both sides, and never where one is missing
RELATIONS: Mapping[str, Relation] = {
    "is": _shares,
    "is not": lambda left, right, parts: not _shares(left, right, parts),
    "differs from": lambda left, right, parts: not _shares(left, right, parts),
    "not in": lambda left, right, parts: not _shares(left, right, parts),
    "partly outside": lambda left, right, parts: not _items(left) <= _items(right),
    "older than": _older,
    "newer than": lambda left, right, parts: _older(right, left, parts),
    "less than": _older,
    "more than": lambda left, right, parts: _older(right, left, parts),
    "at least": lambda left, right, parts: bool(left and right) and not _older(left, right, parts),
    "of another generation than": lambda left, right, parts: _generations(left).isdisjoint(_generations(right)),
    "not of every generation of": lambda left, right, parts: not _generations(right) <= _generations(left),
}  # fmt: skip
