"""Every signature in a log of any size: one pass for the fixed texts, patterns only around what it finds.

One automaton (Aho-Corasick) looks for the fixed texts of all patterns at once; most of a log holds none of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from rocmatrix.diagnosis.pattern import WIDEST, Pattern, squeeze
from rocmatrix.diagnosis.search.chunk import Chunk, Shape, context, readable
from rocmatrix.diagnosis.search.ends import all_of, both_ends, last
from rocmatrix.diagnosis.search.exclusions import is_counted
from rocmatrix.diagnosis.search.frames import MOST_LINES, packages
from rocmatrix.diagnosis.search.index import Lookup
from rocmatrix.diagnosis.search.languages import MOST as MOST_TRANSLATED
from rocmatrix.diagnosis.search.languages import reading, readings
from rocmatrix.diagnosis.search.match import LAST_LINES, MOST_COUNTED, Match, Scanned, merge
from rocmatrix.diagnosis.search.narrowed import narrowed
from rocmatrix.diagnosis.search.repeats import Numbers, broken, left
from rocmatrix.diagnosis.signature import Signature

KEPT = 2 * WIDEST  # squeezed bytes that are read again with the next chunk, so that no match is cut
LONGEST_KEPT = 1 << 20
DEFERRED = 2  # lines at the end of a chunk: the next one may excuse them, and two more belong to a message
MOST_HINTED = 1 << 16  # squeezed bytes at the end of a chunk in which hints of an exception are looked for
LARGE = 1 << 20  # bytes of a chunk from which on it is worth searching its end apart
_Place = tuple[str, int | None]  # a signature's id, and the place of one of its causes


class Scanner:
    """The automaton of a set of signatures."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._patterns = list(_searched(signatures))
        self._looked_for = [pattern for _, _, pattern in self._patterns]
        self._lookup = Lookup(patterns=self._looked_for)
        self._late = frozenset(number for number, row in enumerate(self._patterns) if _is_late(*row[:2]))
        self._numbers_of: dict[_Place, list[int]] = {}
        for number, (one, place, _) in enumerate(self._patterns):
            self._numbers_of.setdefault((one.id, place), []).append(number)
        self._numbers = Numbers(pattern.literals for pattern in self._looked_for)

    def scan(self, blocks: Iterable[bytes]) -> Scanned:
        """Look through a log that comes as chunks of whole lines."""
        done, last = Scanned(), None
        for block in blocks:
            if last is not None:
                self.read(last, done, goes_on=True)
            last = block
        if last is not None:
            self.read(last, done)
        return done.ended()

    def read(self, block: bytes, done: Scanned, *, goes_on: bool = False) -> None:
        """Look through one more chunk of whole lines, after those that `done` holds the findings of.

        Args:
            block: the lines.
            done: what was found; filled.
            goes_on: whether more follows for certain: the last lines are then judged with that.
        """
        self._look_at(done.kept, block, done, goes_on)
        done.lines += block.count(b"\n") + (not block.endswith(b"\n"))
        done.bytes += len(block)
        done.kept = _end(done.kept + block) if block.endswith(b"\n") else b""

    def _look_at(self, kept: bytes, block: bytes, done: Scanned, goes_on: bool) -> None:
        """Search both views of a block; what only the second shows was hidden by a wrapped line."""
        first = done.lines + 1 - kept.count(b"\n")
        raw = kept + block
        whole = Chunk(raw, first, 0, raw)
        lines, places = broken(whole, done.repeats.is_dense)
        runs = done.repeats.runs(lines, bisect_left(places, kept.count(b"\n")), self._numbers)
        text, searched = left(whole if runs is None else lines, runs)
        rows = tuple(places[row] for row in searched)
        deferred = _deferred(whole.raw) if goes_on else 0
        translated = len(whole.raw) <= MOST_TRANSLATED
        known, last = readings(kept[: len(kept) - done.deferred], translated), None
        for number, view in enumerate(readings(text, translated)):
            found: dict[_Place, Match] = {}
            size = len(squeeze(known[min(number, len(known) - 1)]))
            others = partial(reading, number, translated) if rows else None
            chunk = Chunk(view, first, size, raw, rows, others, DEFERRED if deferred else 0, whole)
            if chunk.squeezed == last:  # all that stood before lines was blanks: nothing else can match
                break
            last = chunk.squeezed
            spent = self._spent(done, MOST_COUNTED if number == 0 else 1)
            counted, hits = self._search(chunk, found, spent, _full(done))
            if number == 0:
                done.repeats.searched(counted if lines is whole else (), hits, lines, self._numbers)
            for (name, place), match in found.items():
                if place is None:
                    merge(done.matches, name, match, counts=number == 0)
                else:
                    done.signs.setdefault((name, place), match)
        done.deferred = deferred
        for name, count in done.repeats.left_out().items():
            done.matches[name].count = min(done.matches[name].count + count, MOST_COUNTED)

    def _spent(self, done: Scanned, most: int) -> frozenset[int]:
        """Return the patterns that more text adds nothing to: a sign seen once, or what was counted `most` times.

        The second view adds only what was not found yet, so there once is enough.
        """
        full = (
            (name, None)
            for name, match in done.matches.items()
            if match.count >= most and (most == 1 or not match.signature.uncaught)
        )
        return frozenset(number for place in (*full, *done.signs) for number in self._numbers_of.get(place, ()))

    def _search(
        self, chunk: Chunk, found: dict[_Place, Match], spent: frozenset[int], full: frozenset[str]
    ) -> tuple[set[tuple[str, int]], int]:
        """Look through a chunk; return the lines that count, by the signature's id, and how many texts were found.

        Args:
            chunk: the lines.
            found: what is found; filled.
            spent: patterns that are not looked for any more.
            full: signatures that were counted as often as is shown.
        """
        seen: set[tuple[_Place, int]] = set()
        raised: dict[str, tuple[Signature, int]] = {}
        spans, hits = self._lookup.spans(chunk.squeezed, spent, *self._counted_late(chunk, full))
        for number, around in narrowed(chunk.squeezed, spans, self._lookup).items():
            signature, place, pattern = self._patterns[number]
            for start in self._counted(chunk, number, around, full):
                row = chunk.line(start)
                _record(found, signature, place, pattern, (start, row), chunk)
                seen.add(((signature.id, place), row))
                if place is None and signature.uncaught:
                    raised[signature.id] = (signature, max(start, raised.get(signature.id, (signature, 0))[1]))
        for signature, start in raised.values():
            _read_message(found, signature, start, chunk)
        counts = Counter(name for name, _ in seen)
        for name, kept in found.items():
            kept.count = min(counts[name], MOST_COUNTED)
        return {(name, row) for (name, place), row in seen if place is None}, hits

    def _counted_late(self, chunk: Chunk, full: frozenset[str]) -> tuple[frozenset[int], int]:
        """Return the patterns of which only matches near the end of a chunk count, and from where on.

        Args:
            chunk: the lines.
            full: signatures that were counted as often as is shown.
        """
        tail = min(chunk.tail(LAST_LINES), chunk.near_end(MOST_HINTED)) if len(chunk.text) > LARGE else 0
        numbers = (number for name in full for number in self._numbers_of.get((name, None), ()))
        return self._late.union(number for number in numbers if self._patterns[number][0].uncaught), tail

    def _counted(self, chunk: Chunk, number: int, around: list[list[int]], full: frozenset[str]) -> Iterator[int]:
        """Yield where the matches of a pattern begin that count; those of an exception from both ends of the chunk.

        Args:
            chunk: the lines.
            number: of the pattern.
            around: spans in which a match of it may be.
            full: signatures that were counted as often as is shown.
        """
        signature, place, pattern = self._patterns[number]
        most = MOST_COUNTED if place is None else 1  # of a sign only the first is shown
        if place is None and signature.uncaught:
            matches, most = both_ends(chunk, pattern, around, 0 if signature.id in full else most), 2 * most
        else:
            late = _is_late(signature, place)
            matches = all_of(chunk, pattern, last(around, chunk.near_end(MOST_HINTED)) if late else around)
        refused: set[Shape] = set()
        new = (match for match in matches if chunk.known < match[1] <= chunk.until)
        whole = (start for start, end in new if is_counted(chunk, signature, pattern, (start, end), refused))
        return islice(whole, most)


def _full(done: Scanned) -> frozenset[str]:
    """Return the signatures that were counted as often as is shown."""
    return frozenset(name for name, match in done.matches.items() if match.count >= MOST_COUNTED)


def _end(lines: bytes) -> bytes:
    """Return the last lines, enough to hold any match; of a line that is too long, its end."""
    for size in (2 * KEPT, 4 * KEPT, 16 * KEPT):
        start = max(0, len(lines) - size)
        if start == 0 or len(squeeze(lines[start:])) >= KEPT:
            break
    return lines[lines.rfind(b"\n", 0, start) + 1 :] if start and len(lines) - start < LONGEST_KEPT else lines[start:]


def _deferred(lines: bytes) -> int:
    """Return how many bytes the last lines have that are judged with the next ones; 0 where they are too long."""
    start = len(lines)
    for _ in range(DEFERRED):
        start = lines.rfind(b"\n", 0, max(0, start - 1)) + 1
    size = len(lines) - start
    return size if lines.endswith(b"\n") and size <= KEPT else 0


def _is_late(signature: Signature, place: int | None) -> bool:
    """Return whether a pattern is a hint of an exception, which counts near the end alone."""
    return place is not None and place < 0 and signature.uncaught


def leaning(place: int) -> int:
    """Return under which place the hints of a cause are kept, apart from its signs."""
    return ~place


def _searched(signatures: Iterable[Signature]) -> Iterator[tuple[Signature, int | None, Pattern]]:
    """Yield every pattern with its signature, and with the place of the cause that it is a sign or a hint of."""
    for signature in signatures:
        yield from ((signature, None, pattern) for pattern in signature.patterns)
        for place, cause in enumerate(signature.causes):
            yield from ((signature, place, pattern) for pattern in cause.patterns)
            hints = (hint for hint in cause.leanings if not (signature.uncaught and hint.of_exception))
            yield from ((signature, leaning(place), hint) for hint in hints)


def _read_message(found: dict[_Place, Match], signature: Signature, start: int, chunk: Chunk) -> None:
    """Keep the hints that the last exception of a signature gives by its own message.

    They are looked for in that message alone: in all of a log each exception would be searched for each of them.
    """
    for place, cause in enumerate(signature.causes):
        for hint in cause.leanings:
            if hint.of_exception and hint.compiled.search(chunk.squeezed, start, start + hint.width):
                _record(found, signature, leaning(place), hint, (start, chunk.line(start)), chunk)


def _record(
    found: dict[_Place, Match],
    signature: Signature,
    place: int | None,
    pattern: Pattern,
    at: tuple[int, int],
    chunk: Chunk,
) -> None:
    """Keep the first match of a signature, and of later ones their line and weight.

    Args:
        found: what is kept.
        signature: whose match it is.
        place: which of its causes the pattern is a sign of, if any.
        pattern: what matched.
        at: where the match begins in the squeezed text, and the index of its line.
        chunk: the lines.
    """
    known = found.get((signature.id, place))
    start, line = at[0], chunk.first + at[1]
    if known is None or line < known.line:
        weight, last = (known.weight, known.last) if known else (0, 0)
        text = readable(*chunk.around(start))
        known = found[signature.id, place] = Match(
            signature=signature, line=line, text=text, weight=weight, last=last,
            context=context(chunk, start) if signature.values else "",
            packages=packages(chunk.before(start, MOST_LINES)) if signature.names_packages else {},
        )  # fmt: skip
    known.weight = max(known.weight, pattern.weight)
    known.last = max(known.last, line)
