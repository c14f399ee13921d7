"""The automaton of fixed texts, and for each of them the patterns that a match of it may belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import ahocorasick_rs

PART = 1 << 20  # bytes of text that are searched at once
Reach = tuple[int, int, int]  # a pattern's number, and how far before and after a text a match of it goes
Run = list[int]  # of hits of a text that follow one another closely: the end of the first, and the start of the last


@dataclass(frozen=True, kw_only=True)
class Index:
    """Texts, what each of them leads to, and the automaton that finds them by their place in the list."""

    literals: list[bytes]
    reaches: list[list[Reach]]
    automaton: ahocorasick_rs.BytesAhoCorasick

    def hits(self, text: bytes) -> Iterator[tuple[int, list[tuple[int, int, int]]]]:
        """Yield parts of a text by their offset, with the (literal, start, end) of the hits that end in each.

        Each hit is an object of its own: all of a chunk of warnings at once would take more memory than the log.
        """
        before = max(map(len, self.literals), default=1) - 1  # a hit may begin in the part before
        for start in range(0, len(text), PART):
            base = max(0, start - before)
            found = self.automaton.find_matches_as_indexes(text[base : start + PART], overlapping=True)
            yield base, [hit for hit in found if base + hit[2] > start] if base else found


def built(reaches: Mapping[bytes, list[Reach]]) -> Index:
    """Return the index of texts with the patterns that each is part of."""
    literals = list(reaches)
    automaton = ahocorasick_rs.BytesAhoCorasick(literals, implementation=ahocorasick_rs.Implementation.DFA)
    return Index(literals=literals, reaches=list(reaches.values()), automaton=automaton)


def without(index: Index, needed: list[list[Reach]]) -> Index:
    """Return an index without the texts that no needed pattern holds: a line that repeats a million times costs less.

    Args:
        needed: for each text of the index the patterns that are still looked for.
    """
    rows = zip(index.literals, index.reaches, needed, strict=True)
    return built({text: reaches for text, reaches, left in rows if left})


def around(runs: Mapping[int, Iterable[Run]], needed: Sequence[Iterable[Reach]]) -> dict[int, list[list[int]]]:
    """Return, by pattern, what lies around the runs of hits of each text, joined where it touches.

    Args:
        runs: by text, its hits.
        needed: the patterns of each text.
    """
    spans: dict[int, list[list[int]]] = {}
    for literal, rows in runs.items():
        for number, before, after in needed[literal]:
            spread = ([max(0, end - before), start + after] for end, start in rows)
            spans.setdefault(number, []).extend(spread)
    return {number: _joined(rows) for number, rows in spans.items()}


def _joined(spans: list[list[int]]) -> list[list[int]]:
    """Return spans in order, those that touch as one."""
    joined: list[list[int]] = []
    for first, last in sorted(spans):
        if not joined or first > joined[-1][1]:
            joined.append([first, last])
        elif last > joined[-1][1]:
            joined[-1][1] = last
    return joined
