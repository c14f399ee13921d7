"""Lines that differ in numbers and addresses alone: searched `EACH` times in a log, then passed over and counted.

A log of 200 MB that fails in every line repeats some dozen lines. Where the search of a chunk cost much, lines of the
next one that were searched often enough, next to lines that they stood next to before, are left out of it. What a
pattern names by number (`error 719`) is no repetition of other numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

import ahocorasick_rs

from rocmatrix.diagnosis.search import index
from rocmatrix.diagnosis.search.chunk import SEAM, Chunk
from rocmatrix.diagnosis.search.places import squeezed_lines

EACH = 32  # lines of one form that are searched
PAIRS = 4  # places where two forms stand next to each other that are searched
NEAR = 2  # lines before and after a searched one that are searched with it: a message may be wrapped
TAIL_LINES, TAIL_BYTES = 220, 64 << 10  # the end of each chunk is searched: exceptions and their hints count there
DENSE = 1000  # bytes of text for each fixed text in it, from which on it is worth a look for repeated lines
USELESS = 0.8  # from this part of lines on that are searched all the same, all are
NEW = 0.3  # from this part of lines on whose form is new, the next chunks are not looked at, at most `MOST_PAUSED`
MOST_PAUSED = 16
MOST_FORMS = 100_000  # in memory
WIDE = 400  # bytes between lines that are not neighbours: more than most parts of a pattern stand for
LONG = 1 << 16  # bytes of a line from which on parts of it are taken for lines
_ENDS = (b"},", b"\\n", b"\r")
_DIGITS = b"0123456789"
_DIGITS_OF = frozenset(_DIGITS)
# what looks like an address: six digits of hexadecimal, or four that do not end like a word, and what Kubernetes
# appends to names, which has no vowels; a look ahead for a digit, or both in one expression, took thrice as long
_HEX = re.compile(rb"[0-9a-fA-F]{4,}(?:(?<=[0-9a-fA-F]{6})|(?<![a-fA-F]{4}))(?:-[0-9a-fA-F]{4,12}){0,4}")
_SUFFIX = re.compile(rb"-[bcdfghjklmnpqrstvwxz2-9]{5,10}\b")
Runs = list[tuple[int, int]]  # of lines that are searched: the first, and the one after the last


class Numbers:
    """The fixed texts that hold a number, and the automaton that finds them: made for the first log that needs it."""

    def __init__(self, texts: Iterable[Iterable[bytes]]) -> None:
        self._texts = texts

    @cached_property
    def _automaton(self) -> tuple[ahocorasick_rs.BytesAhoCorasick, int]:
        """The automaton, and the bytes of its longest text; a DFA takes 12 MB and two thirds of the time."""
        texts = {text for row in self._texts for text in row if not _DIGITS_OF.isdisjoint(text)} or {b"\0"}
        kind = ahocorasick_rs.Implementation.DFA
        return ahocorasick_rs.BytesAhoCorasick(sorted(texts), implementation=kind), max(map(len, texts))

    def rows(self, chunk: Chunk) -> dict[int, int]:
        """Return the lines of a chunk that hold such texts, and a hash of those texts."""
        found: dict[int, int] = {}
        automaton, longest = self._automaton
        lines = squeezed_lines(chunk.text)
        starts, row = list(accumulate(map(len, lines), initial=0)), 0
        for offset, places in index.found(automaton, b"".join(lines), longest):
            for text, first, _ in places:
                start = offset + first
                if not starts[row] <= start < starts[row + 1]:
                    row = bisect_right(starts, start) - 1
                found[row] = hash((found.get(row, 0), text))
        return found


@dataclass(kw_only=True)
class Repeats:
    """How often forms of lines, and of two lines in a row, were searched in one log; by hash, to bound the memory."""

    is_dense: bool = False
    _lines: dict[int, int] = field(default_factory=dict)
    _pairs: dict[int, int] = field(default_factory=dict)
    _forms: list[int] = field(default_factory=list)  # of the lines of this chunk; empty where it was not looked at
    _dropped: Counter[int] = field(default_factory=Counter)
    _matched: dict[int, Counter[str]] = field(default_factory=dict)
    _wait: int = 0
    _paused: int = 0
    _useless: int = 0  # one more than the chunks that are not looked at next, as nearly all lines were searched

    def runs(self, chunk: Chunk, known: int, numbers: Numbers) -> Runs | None:
        """Return the lines of a chunk to search, or None for all of them.

        Args:
            chunk: the lines as they came.
            known: lines at its start that were searched with the last chunk.
            numbers: fixed texts of patterns that hold a number.
        """
        self._forms, self._dropped = [], Counter()
        if not self.is_dense or self._wait > 0:
            self._wait -= 1
            return None
        runs = _joined(self._fresh(chunk, known, numbers), known, _tail(chunk), len(self._forms))
        if sum(end - start for start, end in runs) > USELESS * len(self._forms):
            self._useless = min(2 * self._useless + 1, MOST_PAUSED + 1)
            self._wait = max(self._wait, self._useless - 1)
            return None
        self._useless = 0
        for (_, start), (end, _) in pairwise(runs):
            self._dropped.update(self._forms[start:end])
        return runs

    def _fresh(self, chunk: Chunk, known: int, numbers: Numbers) -> list[int]:
        """Return the lines whose form, or whose form with the line before, was not searched often enough."""
        self._forms = forms = list(map(hash, chunk.raw.translate(None, _DIGITS).split(b"\n")))
        numbered = numbers.rows(chunk)
        for row, number in numbered.items():
            forms[row] = hash((forms[row], number))
        known_forms = {form for form, count in self._lines.items() if count >= EACH}
        unknown = [row for row in range(known, len(forms)) if forms[row] not in known_forms]
        plain = _without_addresses([chunk.printed[row] for row in unknown])
        for row, form in zip(unknown, plain, strict=True):
            forms[row] = hash((form, numbered[row])) if row in numbered else form
        pairs = list(map(hash, pairwise((0, *forms))))
        known_pairs = {pair for pair, count in self._pairs.items() if count >= PAIRS}
        rows, before = range(known, len(forms)), len(self._lines)
        new = [row for row in rows if forms[row] not in known_forms or pairs[row] not in known_pairs]
        fresh = [row for row in new if self._is_fresh(forms[row], pairs[row])]
        never_seen = len(self._lines) - before > NEW * len(rows)
        self._paused = min(MOST_PAUSED, 2 * self._paused + 2) if never_seen else 0
        self._wait = self._paused
        self._lines, self._pairs = _bounded(self._lines, EACH), _bounded(self._pairs, PAIRS)
        return fresh

    def _is_fresh(self, form: int, pair: int) -> bool:
        """Count a line whose form, or whose form with the line before, was not searched often enough."""
        count, seen = self._lines.get(form, 0), self._pairs.get(pair, 0)
        if count >= EACH and seen >= PAIRS:
            return False
        self._lines[form], self._pairs[pair] = count + 1, seen + 1
        return True

    def searched(self, rows: Iterable[tuple[str, int]], hits: int, chunk: Chunk, numbers: Numbers) -> None:
        """Take what was found in a chunk.

        Args:
            rows: lines with the signature that each counts for.
            hits: fixed texts that were found in it.
            chunk: its lines as they came.
            numbers: fixed texts of patterns that hold a number.
        """
        if not self.is_dense and hits * DENSE > len(chunk.raw):
            self.is_dense = True
            self._fresh(chunk, 0, numbers)  # counts its lines: they were all searched
        if self._forms:
            for name, row in rows:
                self._matched.setdefault(self._forms[row], Counter())[name] += 1
            if len(self._matched) > MOST_FORMS:
                self._matched.clear()

    def left_out(self) -> Counter[str]:
        """Return how many lines were left out of the chunk's search whose form most often counts for a signature."""
        found = Counter[str]()
        for form, count in self._dropped.items():
            often = (name for name, times in self._matched.get(form, {}).items() if times >= EACH // 2)
            found.update(dict.fromkeys(often, count))
        return found


def broken(chunk: Chunk, is_dense: bool) -> tuple[Chunk, Sequence[int]]:
    """Return a chunk with its lines of megabytes broken, and for each line then the one that it is part of.

    Such lines are lists of records in JSON, messages with escaped ends of lines, or what a bar was drawn over.

    Args:
        chunk: the lines as they came.
        is_dense: whether repeated lines are looked for at all.
    """
    if not is_dense or not chunk.has_line_of(LONG):
        return chunk, range(len(chunk.raw) + 1)
    lines, places = list[bytes](), list[int]()
    for place, line in enumerate(chunk.printed):
        parts = _parts(line) if len(line) >= LONG else [line]
        lines += parts
        places += [place] * len(parts)
    text = b"\n".join(lines)
    return Chunk(text, chunk.first, 0, text), places


def _parts(line: bytes) -> list[bytes]:
    for end in _ENDS:
        line = line.replace(end, end + b"\n")
    return line.split(b"\n")


def left(chunk: Chunk, runs: Runs | None) -> tuple[bytes, tuple[int, ...]]:
    """Return the lines of a chunk that are searched, and their places among all lines; none where these are all."""
    if runs is None:
        return chunk.raw, ()
    text, rows = list[bytes](), list[int]()
    for start, end in runs:
        if rows:
            text.append(SEAM * WIDE)
            rows.append(start)
        text += chunk.printed[start:end]
        rows += range(start, end)
    return b"\n".join(text), tuple(rows)


def _without_addresses(lines: Sequence[bytes]) -> list[int]:
    """Return the forms of lines without what looks like an address; all at once, as a chunk may have 100,000."""
    plain = _HEX.sub(b"", _SUFFIX.sub(b"", b"\n".join(lines)))
    return list(map(hash, plain.translate(None, _DIGITS).split(b"\n"))) if lines else []


def _tail(chunk: Chunk) -> int:
    """Return how many lines at the end of a chunk are always searched."""
    return max(TAIL_LINES, chunk.raw.count(b"\n", max(0, len(chunk.raw) - TAIL_BYTES)) + 1)


def _joined(fresh: Sequence[int], known: int, tail: int, lines: int) -> Runs:
    """Return the runs of lines around fresh ones, with those at both ends of the chunk.

    Args:
        fresh: lines, in order.
        known: lines at the start.
        tail: lines at the end.
        lines: of the chunk.
    """
    runs = [(0, min(known, lines))]
    for start, end in sorted([*((row - NEAR, row + NEAR + 1) for row in fresh), (lines - tail, lines)]):
        if start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], min(max(end, runs[-1][1]), lines))
        else:
            runs.append((start, min(end, lines)))
    return runs


def _bounded(counts: dict[int, int], most: int) -> dict[int, int]:
    """Return counts of at most `MOST_FORMS` forms: of more, those that were seen `most` times."""
    if len(counts) <= MOST_FORMS:
        return counts
    often = {form: count for form, count in counts.items() if count >= most}
    return often if len(often) <= MOST_FORMS else {}
