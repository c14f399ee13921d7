"""Matches of an exception that nothing caught: the first ones of a chunk, and those in its last lines.

A log may hold a million exceptions that were handled. Whether one stands at the end depends on the last lines alone,
and of the others only where they began is shown.

Spans that lack a further text of the pattern are searched as well: to look for that text took as long as it saved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from rocmatrix.diagnosis.pattern import Pattern
from rocmatrix.diagnosis.search.chunk import Chunk
from rocmatrix.diagnosis.search.match import LAST_LINES

MOST_SEARCHED = 1 << 18  # bytes around hits from a chunk's start; one that has more is a chunk of exceptions
MOST_IN_LINE = 100  # matches of one line: a line of megabytes may hold a million
Spans = Sequence[Sequence[int]]


def all_of(chunk: Chunk, pattern: Pattern, spans: Spans) -> Iterator[tuple[int, int]]:
    """Yield where a pattern matches within spans of the squeezed text, in order; of one line `MOST_IN_LINE` at most.

    Args:
        chunk: the lines.
        pattern: what is looked for.
        spans: parts of the squeezed text that do not overlap, in order.
    """
    in_line: list[int] = []  # where the last matches begin; they are counted by lines when there are enough for one
    for first, end in spans:
        place = first
        while match := pattern.compiled.search(chunk.squeezed, place, end):
            yield match.span()
            start, place = match.span()
            in_line.append(start)
            if len(in_line) == MOST_IN_LINE:
                in_line = in_line[bisect_left(in_line, chunk.beginning(start)) :]
                if len(in_line) == MOST_IN_LINE:
                    place, in_line = max(place, chunk.after(start)), []


def both_ends(chunk: Chunk, pattern: Pattern, spans: Spans, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first `most` matches of a chunk, then those in its last lines.

    Args:
        chunk: the lines.
        pattern: what is looked for.
        spans: parts of the squeezed text that do not overlap, in order.
        most: matches from the chunk's start; 0 for the last lines alone.
    """
    reached, head = 0, first(spans, MOST_SEARCHED)
    for number, span in enumerate(all_of(chunk, pattern, head)):
        if number == most:
            break
        reached = span[1]
        yield span
    else:
        if head == list(map(list, spans)):
            return
    yield from all_of(chunk, pattern, last(spans, max(reached, chunk.tail(LAST_LINES))))


def first(spans: Spans, most: int) -> list[list[int]]:
    """Return the first parts of spans, `most` bytes together.

    Args:
        spans: parts of the squeezed text, in order.
        most: bytes.
    """
    found: list[list[int]] = []
    for start, end in spans:
        if most <= 0:
            break
        found.append([start, min(end, start + most)])
        most -= end - start
    return found


def last(spans: Spans, start: int) -> list[list[int]]:
    """Return the parts of spans behind a place.

    Args:
        spans: parts of the squeezed text.
        start: a place in it.
    """
    return [[max(first, start), end] for first, end in spans if end > start]
