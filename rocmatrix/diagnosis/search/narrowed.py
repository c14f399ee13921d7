"""Patterns whose fixed text stands in nearly every line are looked for around a rarer one that each match holds, too.

A log of a million `ValueError:` would have each pattern that begins so tried in all of it. Nothing that matches is
lost: a match holds one of both kinds of texts, and spans reach as far around it as the pattern is wide. The rarer texts
of all such patterns are looked for at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter

import ahocorasick_rs

from rocmatrix.diagnosis.pattern import Pattern
from rocmatrix.diagnosis.search.index import Lookup, Texts, found

DENSE = 1 << 16  # bytes of spans in one chunk from which on a rarer text is worth a search
SHARE = 8  # spans of a match's width around the rarer text are at most this part of those that they replace
MOST_PLACES = 2_000  # of a choice in one chunk
Span = list[int]  # start and end
_START, _END = itemgetter(0), itemgetter(1)


def narrowed(text: bytes, around: Mapping[int, list[Span]], lookup: Lookup) -> dict[int, list[Span]]:
    """Return, by pattern, spans that hold every match in the given ones: smaller where a rarer text allows that.

    Such a pattern is looked for by its rarer text from now on.

    Args:
        text: squeezed text.
        around: by the number of a pattern, parts of the text that do not overlap, in order.
        lookup: all patterns, and the texts that they are looked for by.
    """
    sizes = {number: sum(map(_END, spans)) - sum(map(_START, spans)) for number, spans in around.items()}
    dense = [number for number, size in sizes.items() if size > DENSE]
    rarer = [(number, texts) for number in dense for texts in lookup.others(number)]
    if not rarer:
        return dict(around)
    patterns = lookup.patterns
    most = [min(MOST_PLACES, int(sizes[number] / SHARE / patterns[number].width)) for number, _ in rarer]
    all_places = _places(text, tuple(texts for _, texts in rarer), most)
    rows: dict[int, list[tuple[list[tuple[int, int]], Texts]]] = {}
    for place, (number, texts) in enumerate(rarer):
        if (places := all_places[place]) is not None:
            rows.setdefault(number, []).append((places, texts))
    rarest = {number: min(choices, key=lambda choice: len(choice[0])) for number, choices in rows.items()}
    lookup.prefer({number: texts for number, (_, texts) in rarest.items()}, [number for number, _ in rarer])
    return {**around, **{number: _spans(places, patterns[number]) for number, (places, _) in rarest.items()}}


def _places(text: bytes, choices: tuple[Texts, ...], most: list[int]) -> list[list[tuple[int, int]] | None]:
    """Return, for each choice, where its texts begin and end, by their ends; None where they are too many.

    Args:
        text: squeezed text.
        choices: sets of texts.
        most: places of each choice.
    """
    automaton, owners = _index(choices)
    left = [list(rows) for rows in owners]  # without the choices that a text stands in too often for
    places: list[list[tuple[int, int]]] = [[] for _ in choices]
    for offset, hits in found(automaton, text, max(len(literal) for texts in choices for literal in texts)):
        for literal, start, end in hits:
            for owner in left[literal]:
                places[owner].append((offset + start, offset + end))
                if len(places[owner]) > most[owner]:
                    left[literal] = [other for other in left[literal] if other != owner]
    return [rows if len(rows) <= most[owner] else None for owner, rows in enumerate(places)]


@lru_cache(maxsize=16)
def _index(choices: tuple[Texts, ...]) -> tuple[ahocorasick_rs.BytesAhoCorasick, list[list[int]]]:
    """Return the automaton of all texts, and for each text the choices that it belongs to."""
    owners: dict[bytes, list[int]] = {}
    for place, texts in enumerate(choices):
        for text in sorted(texts):
            owners.setdefault(text, []).append(place)
    return ahocorasick_rs.BytesAhoCorasick(list(owners)), list(owners.values())


def _spans(places: list[tuple[int, int]], pattern: Pattern) -> list[Span]:
    """Return where matches that hold a text at one of these places can be; spans do not overlap."""
    spans: list[Span] = []
    for start, end in places:
        first, last = max(0, end - pattern.width), start + pattern.width + pattern.ahead
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(last, spans[-1][1])
        else:
            spans.append([first, last])
    return spans
