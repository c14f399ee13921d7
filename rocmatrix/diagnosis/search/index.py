"""The automaton of fixed texts, and for each of them the patterns that a match of it may belong to.

A text that stands in most lines of a log costs a step for each place, though it leads to nothing. So patterns that more
text adds nothing to are left out, those that count at the end alone are looked for there, and a pattern whose text is
frequent in this log is looked for by another one that each match holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

import ahocorasick_rs

from rocmatrix.diagnosis.pattern import Pattern

PART = 1 << 18  # bytes that are searched at once: each text that is found takes 100 bytes of memory
# from so many places of one text in one block on, so many bytes apart, its patterns are looked for in all that is left
MANY_HITS, CROWDED = 300, 512
MANY_IDLE = 20_000  # hits in one block that lead to nothing any more: worth another automaton
MOST_VIEWS = 2  # of one log, each with patterns that it is not looked for any more
MOST_WAITED = 16  # chunks until a rarer text is looked for again
UNSEEN = -1 << 40  # where a span ends that no hit has opened
Place = tuple[int, int, int]  # a text's place in the list, where it begins and where it ends
Reach = tuple[int, int, int]  # a pattern's number, and how far before and after a text a match of it goes
Texts = frozenset[bytes]
FLOODED: list[Reach] = []  # stands for the patterns of a text that is crowded
Spans = dict[int, list[list[int]]]  # by the number of a pattern, where a match of it may be: start and end


_end = itemgetter(2)


@dataclass(frozen=True, kw_only=True)
class Index:
    """Texts, what each of them leads to, and the automaton that finds them by their place in the list."""

    literals: list[bytes]
    reaches: list[list[Reach]]
    automaton: ahocorasick_rs.BytesAhoCorasick

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest text."""
        return max(map(len, self.literals), default=0)


def found(automaton: ahocorasick_rs.BytesAhoCorasick, text: bytes, longest: int) -> Iterator[tuple[int, list[Place]]]:
    """Yield where parts of a text begin, and where in them texts stand, by their ends: a log may hold a million.

    Args:
        automaton: of the texts.
        text: what is searched.
        longest: bytes of the longest text.
    """
    for start in range(0, len(text), PART):
        yield part(automaton, text, longest, start)


def part(automaton: ahocorasick_rs.BytesAhoCorasick, text: bytes, longest: int, start: int) -> tuple[int, list[Place]]:
    """Return a place in a text, and by it where texts stand that end behind another place, in one part from there on.

    Args:
        automaton: of the texts.
        text: what is searched.
        longest: bytes of the longest text.
        start: the place behind which they end.
    """
    before = max(0, start - longest)
    places = automaton.find_matches_as_indexes(text[before : start + PART], overlapping=True)
    return before, places[bisect_right(places, start - before, key=_end) :]


def built(reaches: Mapping[bytes, list[Reach]]) -> Index:
    """Return the index of texts with the patterns that each is part of.

    The automaton is a contiguous NFA: 44 MB smaller than a DFA and made faster; it reads a log of 200 MB 0.4 s slower.
    """
    literals = list(reaches)
    automaton = ahocorasick_rs.BytesAhoCorasick(literals, implementation=ahocorasick_rs.Implementation.ContiguousNFA)
    return Index(literals=literals, reaches=list(reaches.values()), automaton=automaton)


@dataclass(kw_only=True)
class _Searched:
    """An index without texts that only spent patterns hold, and what is left of it without crowded texts."""

    spent: frozenset[int]
    index: Index
    _crowded: Texts = frozenset()
    _thin: Index | None = None

    def left(self, flooded: Set[bytes]) -> Index:
        """Return the index without crowded texts, once all of them are flooded in a text."""
        return self._thin if self._thin and self._crowded <= flooded else self.index

    def thin(self, crowded: Texts) -> None:
        """Make the index without some texts."""
        rows = zip(self.index.literals, self.index.reaches, strict=True)
        self._crowded, self._thin = crowded, built({text: reaches for text, reaches in rows if text not in crowded})


@dataclass(kw_only=True)
class Lookup:
    """Texts that patterns are looked for by in one log after another, and the automata of them."""

    patterns: Sequence[Pattern]
    _texts: list[Texts] = field(default_factory=list)
    _reaches: list[Reach] = field(default_factory=list)
    _whole: _Searched | None = None
    _lean: list[_Searched] = field(default_factory=list)  # the newest last; the views of a log differ in what is spent
    _waits: dict[int, list[int]] = field(default_factory=dict)  # chunks to wait, and how many were waited at last

    def __post_init__(self) -> None:
        self._texts = [pattern.literals for pattern in self.patterns]
        rows = enumerate(self.patterns)
        self._reaches = [(number, pattern.width, pattern.width + pattern.ahead) for number, pattern in rows]

    def spans(
        self, text: bytes, spent: frozenset[int], late: frozenset[int] = frozenset(), tail: int = 0
    ) -> tuple[Spans, int]:
        """Return, by pattern, where a match of it may be, and how many texts led there. No two spans overlap.

        A match holds a text, so it begins at most its width before the text's end and ends alike after its start.

        Args:
            text: squeezed text.
            spent: patterns that are not looked for.
            late: patterns of which only what begins from `tail` on counts.
            tail: a place in the text.
        """
        if not tail or not late:
            return self._around(text, self._index(spent), spent, 0)
        early, hits = self._around(text, self._index(spent | late), spent | late, 0)
        others = frozenset(range(len(self.patterns))) - (late - spent)
        near, near_hits = self._around(text, self._all(), others, tail)
        return {**early, **near}, hits + near_hits

    def others(self, number: int) -> list[Texts]:
        """Return the sets of texts that a pattern could be looked for by as well; none where that was tried lately."""
        waits = self._waits.get(number)
        if waits and waits[0] > 0:
            waits[0] -= 1
            return []
        pattern = self.patterns[number]
        return [texts for texts in (pattern.literals, *pattern.others) if texts != self._texts[number]]

    def prefer(self, rarer: Mapping[int, Texts], tried: Iterable[int]) -> None:
        """Look for patterns by other texts from now on.

        Args:
            rarer: the texts, by the number of a pattern.
            tried: patterns that rarer texts were looked for of: those without any are not tried again at once.
        """
        for number in set(tried) - set(rarer):
            waited = min(MOST_WAITED, 2 * self._waits.get(number, [0, 0])[1] + 2)
            self._waits[number] = [waited, waited]
        for number, texts in rarer.items():
            self._texts[number] = texts
        if rarer:
            self._whole, self._lean = None, []

    def _all(self) -> _Searched:
        self._whole = self._whole or _Searched(spent=frozenset(), index=self._built(frozenset()))
        return self._whole

    def _index(self, spent: frozenset[int]) -> _Searched:
        """Return the smallest index of all patterns but some of those that are spent."""
        usable = (lean for lean in self._lean if lean.spent <= spent)
        return max(usable, key=lambda lean: len(lean.spent), default=None) or self._all()

    def _built(self, spent: frozenset[int]) -> Index:
        reaches: dict[bytes, list[Reach]] = defaultdict(list)
        for reach, texts in zip(self._reaches, self._texts, strict=True):
            if reach[0] not in spent:
                for text in texts:
                    reaches[text].append(reach)
        return built(reaches)

    def _around(self, text: bytes, searched: _Searched, spent: frozenset[int], first: int) -> tuple[Spans, int]:
        """Return spans of the patterns that are not spent around texts that end behind a place, as `spans` does.

        Args:
            text: squeezed text.
            searched: an index of all these patterns, and maybe of others.
            spent: patterns that are not looked for.
            first: a place.
        """
        collected = _Collected(patterns=len(self.patterns), size=len(text), spent=spent)
        for start in range(first, len(text), PART):
            index = searched.left(collected.flooded)
            collected.take(index, *part(index.automaton, text, index.longest, start))
        if not first:
            self._lessen(searched, collected)
        return collected.spans, collected.hits

    def _lessen(self, searched: _Searched, collected: _Collected) -> None:
        """Make automata for the next chunks without texts that stand everywhere in this one and led to nothing."""
        if collected.idle > MANY_IDLE:
            lean = _Searched(spent=collected.spent, index=self._built(collected.spent))
            self._lean = [*self._lean[1 - MOST_VIEWS :], lean]
        elif collected.wasted > MANY_IDLE:
            searched.thin(frozenset(text for text, hits in collected.often.items() if hits > MANY_IDLE // 4))


class _Collected:
    """Spans around texts as they are found; of a text that is crowded one span goes to the end, and it is `flooded`."""

    def __init__(self, *, patterns: int, size: int, spent: frozenset[int]) -> None:
        """Collect for the patterns, by number, that are not spent, in a text of `size` bytes."""
        self.size, self.spent = size, spent
        self.found = self.idle = 0  # texts, and those of them that only spent patterns hold
        self.often: dict[bytes, int] = {}  # how often a flooded text was found
        # the span of each pattern that is still open: plain numbers, as a log may hold a text a million times
        self._opened, self._closing = [0] * patterns, [UNSEEN] * patterns
        self._closed: Spans = {}
        self._index: Index | None = None
        self._needed: list[list[Reach] | None] = []  # filled at the first hit: most texts have none
        self._hits: list[int] = []

    @property
    def flooded(self) -> Set[bytes]:
        """The texts that need not be looked for any more."""
        return self.often.keys()

    @property
    def wasted(self) -> int:
        """How often texts were found that need not be looked for any more."""
        return sum(self.often.values())

    @property
    def hits(self) -> int:
        """How many texts led to a pattern that is not spent."""
        return self.found - self.idle

    @property
    def spans(self) -> Spans:
        """All spans, those that are still open as well."""
        ends = {number: [self._opened[number], self._closing[number]] for number in self._closed}
        return {number: [*rows, ends[number]] for number, rows in self._closed.items()}

    def take(self, index: Index, offset: int, places: list[Place]) -> None:
        """Take the places of one part.

        Args:
            index: whose texts were found.
            offset: where the part begins in the text.
            places: of texts in that part.
        """
        if index is not self._index:
            self._index, self._needed, self._hits = index, [None] * len(index.reaches), [0] * len(index.reaches)
        needed, hits, often = self._needed, self._hits, self.often
        opened, closing, spans = self._opened, self._closing, self._closed
        self.found += len(places)
        for literal, begins, ends in places:
            reaches = needed[literal]
            if reaches is None:
                reaches = needed[literal] = _left(index.reaches[literal], self.spent)
            if not reaches:
                if reaches is FLOODED:
                    often[index.literals[literal]] += 1
                else:
                    self.idle += 1
                continue
            hits[literal] += 1
            start, end = offset + begins, offset + ends
            if hits[literal] % MANY_HITS == 0 and end < CROWDED * hits[literal]:
                needed[literal], often[index.literals[literal]] = FLOODED, 0
                reaches = [(number, before, self.size - start) for number, before, _ in reaches]
            for number, before, after in reaches:
                known = closing[number]
                if end - before > known:
                    rows = spans.setdefault(number, [])
                    if known != UNSEEN:
                        rows.append([opened[number], known])
                    opened[number], closing[number] = max(0, end - before), start + after
                elif start + after > known:
                    closing[number] = start + after


def _left(reaches: list[Reach], spent: frozenset[int]) -> list[Reach]:
    """Return the patterns of a literal that are still looked for."""
    return [reach for reach in reaches if reach[0] not in spent] if spent else reaches
