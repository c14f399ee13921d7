"""A pattern whose fixed text stands in nearly every line is looked for around a rarer one that each match holds, too.

A log of a million `ValueError:` would have each pattern that begins so tried in all of it. Nothing that matches is
lost: a match holds a text of every choice, and spans reach as far around it as the pattern is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import ahocorasick_rs

from rocmatrix.diagnosis.pattern import Pattern

DENSE = 1 << 16  # bytes of spans in one chunk from which on a rarer text is worth a search
SHARE = 4  # the bytes around the rarer text are at most this part of those that they replace
Spans = Sequence[Sequence[int]]


def narrowed(text: bytes, pattern: Pattern, spans: Spans) -> Spans:
    """Return spans that hold every match of a pattern in the given ones, smaller where a rarer text allows that.

    Args:
        text: squeezed text.
        pattern: what is looked for.
        spans: parts of the text that do not overlap, in order.
    """
    size = sum(end - start for start, end in spans)
    if size <= DENSE:
        return spans
    reach = 2 * pattern.width + pattern.ahead
    found: list[tuple[int, int]] | None = None
    for choice in pattern.choices:
        if choice != pattern.literals:
            places = _places(text, choice, most=size // SHARE // reach)
            if places is not None and (found is None or len(places) < len(found)):
                found = places
    return spans if found is None else _around(found, pattern)


def _places(text: bytes, choice: frozenset[bytes], most: int) -> list[tuple[int, int]] | None:
    """Return where texts begin and end, in order of their ends; None where they are more than `most`."""
    found = _automaton(choice).find_matches_as_indexes(text, overlapping=True)
    return [(start, end) for _, start, end in found] if len(found) <= most else None


@cache
def _automaton(choice: frozenset[bytes]) -> ahocorasick_rs.BytesAhoCorasick:
    return ahocorasick_rs.BytesAhoCorasick(sorted(choice), implementation=ahocorasick_rs.Implementation.DFA)


def _around(places: list[tuple[int, int]], pattern: Pattern) -> list[list[int]]:
    """Return where matches that hold a text at one of these places can be; spans do not overlap."""
    spans: list[list[int]] = []
    for start, end in places:
        first, last = max(0, end - pattern.width), start + pattern.width + pattern.ahead
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(last, spans[-1][1])
        else:
            spans.append([first, last])
    return spans
