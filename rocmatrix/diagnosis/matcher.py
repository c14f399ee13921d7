"""Every signature in a log of any size: one pass for the fixed texts, patterns only around what it finds.

One automaton (Aho-Corasick) looks for the fixed texts of all patterns at once; most of a log holds none of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from rocmatrix.diagnosis.log_prefixes import views
from rocmatrix.diagnosis.pattern import WIDEST, Pattern, squeeze
from rocmatrix.diagnosis.search.chunk import Chunk, Shape
from rocmatrix.diagnosis.search.frames import MOST_LINES, is_ignored, packages
from rocmatrix.diagnosis.search.index import Reach, built, without
from rocmatrix.diagnosis.signature import Signature

KEPT = 2 * WIDEST  # squeezed bytes that are read again with the next chunk, so that no match is cut
LONGEST_KEPT = 1 << 20
MOST_COUNTED = 1000
MANY_IDLE = 20_000  # hits in one block that lead to nothing any more: worth another automaton
UNSEEN = -1 << 40  # where a span ends that no hit has opened
MOST_HINTED = 1 << 16  # squeezed bytes at the end of a chunk in which hints of an exception are looked for
LONGEST_SHOWN = 240
# in patterns of lines that follow a failure and excuse it: the program went on
GOES_ON = ("retr", "attempt", "fall", "skip", "continu", "ignor")
LAST_LINES = 200  # an exception that nothing caught stands among them; one before was handled
_MODULE = re.compile(rb"[\w.]{1,200}\.$")  # before an exception's name: where it is defined
MOST_BEFORE = 600  # bytes before an exception that show whether it begins its line
# before the text of a line: a byte-order mark, what a bar was drawn over, a journal's field
_BEFORE_TEXT = re.compile(rb"^(?:.*\r)?(?:\xef\xbb\xbf)?(?:.{0,400}\"?MESSAGE\"? ?[=:] ?\"?)?", re.S)
# before `error:` at the start of a message: the program that prints it, its file, or a file and a place in it
_PROGRAM = re.compile(
    rb"(?!.{0,80}(?:warn|info|debug|note|trace))[^\s:]{1,160}(?::\d{1,6}){0,2}:(?: (?:fatal|internal))?"
    rb"|[\d \[(][\d :.,TZ+/\[\]()-]{1,60}",  # or a time
    re.IGNORECASE,
)
_DECORATION = b"])|}>*\x82\x83\x91"  # what may stand before the first word of a line: brackets, borders of panes
Bytes = bytes  # the type, where a field has its name
_Place = tuple[str, int | None]  # a signature's id, and the place of one of its causes


@dataclass(kw_only=True)
class Match:
    """A signature in a log: the first line (from 1) and its text, on how many lines, how much fixed text it matched.

    `last` is the last line that it matched, `context` the first one with those after it, for values; `packages` are
    those of the traceback before it. `log` and `order` are the log's name and its place among those of a folder.
    """

    signature: Signature
    line: int
    text: str
    weight: int
    count: int = 1
    log: str = ""
    order: int = 0
    last: int = 0
    context: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The signature's title, with the values of the line."""
        return self.filled(self.signature.title)

    @property
    def cause(self) -> str:
        """The signature's cause, with the values of the line."""
        return self.filled(self.signature.cause)

    def filled(self, text: str) -> str:
        """Return a text of the signature with the values of the line and of the traceback."""
        return self.signature.filled(text, self.context, self.packages)

    @property
    def where(self) -> str:
        """The line, after the log's name where there are several."""
        return f"{self.log} line {self.line}" if self.log else f"line {self.line}"


@dataclass(kw_only=True)
class Scanned:
    """What was read of a log, the matches by the id of their signature, and the signs by that and a cause's place.

    `kept` is the end of what was read, as a match may begin there.
    """

    matches: dict[str, Match] = field(default_factory=dict)
    signs: dict[tuple[str, int], Match] = field(default_factory=dict)
    lines: int = 0
    bytes: int = 0
    kept: Bytes = b""

    def ended(self) -> Scanned:
        """Return what stands at the end of the log: exceptions that are followed by much more were handled."""
        first = self.lines - LAST_LINES
        standing = {
            name: match
            for name, match in self.matches.items()
            if not match.signature.uncaught or match.last == 0 or match.last > first
        }
        return replace(self, matches=standing)

    def known(self) -> Scanned:
        """Return what does not rest on an exception's words alone: a log that still grows may go on after them."""
        return replace(self, matches={key: row for key, row in self.matches.items() if not row.signature.uncaught})

    def add(self, other: Scanned, *, log: str, order: int) -> None:
        """Take over what was found in another log of the same folder, one that is newer than those before.

        Args:
            log: its name.
            order: its place among the logs, from 0.
        """
        self.lines, self.bytes = self.lines + other.lines, self.bytes + other.bytes
        for name, match in other.matches.items():
            match.log, match.order = log, order
            _merge(self.matches, name, match, counts=True)
        for place, match in other.signs.items():
            match.log, match.order = log, order
            self.signs.setdefault(place, match)


class Scanner:
    """The automaton of a set of signatures."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._patterns = list(_searched(signatures))
        by_literal: dict[bytes, list[int]] = defaultdict(list)
        for number, (_, _, pattern) in enumerate(self._patterns):
            for literal in pattern.literals:
                by_literal[literal].append(number)
        reaches = [(number, one.width, one.width + one.ahead) for number, (_, _, one) in enumerate(self._patterns)]
        self._index = built({text: [reaches[number] for number in numbers] for text, numbers in by_literal.items()})
        self._lean = (frozenset[int](), self._index)

    def scan(self, blocks: Iterable[bytes]) -> Scanned:
        """Look through a log that comes as chunks of whole lines."""
        done = Scanned()
        for block in blocks:
            self.read(block, done)
        return done.ended()

    def read(self, block: Bytes, done: Scanned) -> None:
        """Look through one more chunk of whole lines, after those that `done` holds the findings of."""
        self._look_at(done.kept, block, done)
        done.lines += block.count(b"\n") + (not block.endswith(b"\n"))
        done.bytes += len(block)
        done.kept = _end(done.kept + block) if block.endswith(b"\n") else b""

    def _look_at(self, kept: bytes, block: bytes, done: Scanned) -> None:
        """Search both views of a block; what only the second shows was hidden by a wrapped line."""
        first = done.lines + 1 - kept.count(b"\n")
        known = views(kept)
        for number, text in enumerate(views(kept + block)):
            found: dict[_Place, Match] = {}
            chunk = Chunk(text, first, len(squeeze(known[min(number, len(known) - 1)])), kept + block)
            self._search(chunk, found, self._spent(done, MOST_COUNTED if number == 0 else 1))
            for (name, place), match in found.items():
                if place is None:
                    _merge(done.matches, name, match, counts=number == 0)
                else:
                    done.signs.setdefault((name, place), match)

    def _spent(self, done: Scanned, most: int) -> frozenset[int]:
        """Return the patterns that more text adds nothing to: a sign seen once, or what was counted `most` times.

        The second view adds only what was not found yet, so there once is enough.
        """
        full = {name for name, match in done.matches.items() if match.count >= most}
        if not full and not done.signs:
            return frozenset()
        return frozenset(
            number
            for number, (one, place, _) in enumerate(self._patterns)
            if (
                (one.id, place) in done.signs
                if place is not None
                else one.id in full and (most == 1 or not one.uncaught)
            )
        )

    def _search(self, chunk: Chunk, found: dict[_Place, Match], spent: frozenset[int]) -> None:
        seen: set[tuple[_Place, int]] = set()
        for number, around in self._around_hits(chunk.squeezed, spent).items():
            signature, place, pattern = self._patterns[number]
            near = place is not None and place < 0 and signature.uncaught  # counts near the end only
            spans = _last(around, max(0, len(chunk.squeezed) - MOST_HINTED)) if near else around
            matches = (match.span() for span in spans for match in pattern.compiled.finditer(chunk.squeezed, *span))
            new = (match for match in matches if match[1] > chunk.known)
            refused: set[Shape] = set()
            whole = (match for match in new if _stands(chunk, signature, pattern, match, refused))
            for start, _ in islice(whole, MOST_COUNTED):
                row = chunk.line(start)
                _record(found, signature, place, pattern, (start, row), chunk)
                seen.add(((signature.id, place), row))
        counts = Counter(name for name, _ in seen)
        for name, kept in found.items():
            kept.count = min(counts[name], MOST_COUNTED)

    def _around_hits(self, text: bytes, spent: frozenset[int]) -> dict[int, list[list[int]]]:
        """Return, by pattern, where a match of it may lie. The spans of one pattern do not overlap.

        A match holds a literal, so it begins at most its width before the literal's end and ends alike after its start.
        """
        spans: dict[int, list[list[int]]] = {}
        # the span of each pattern that is still open: plain numbers, as a log may hold a text a million times
        opened, closing = [0] * len(self._patterns), [UNSEEN] * len(self._patterns)
        index = self._lean[1] if self._lean[0] <= spent else self._index
        needed: list[list[Reach] | None] = [None] * len(index.reaches)  # filled at the first hit: most texts have none
        idle = 0
        for literal, start, end in index.automaton.find_matches_as_indexes(text, overlapping=True):
            reaches = needed[literal]
            if reaches is None:
                reaches = needed[literal] = _left(index.reaches[literal], spent)
            idle += not reaches
            for number, before, after in reaches:
                known = closing[number]
                if end - before > known:
                    rows = spans.setdefault(number, [])
                    if known != UNSEEN:
                        rows.append([opened[number], known])
                    opened[number], closing[number] = max(0, end - before), start + after
                elif start + after > known:
                    closing[number] = start + after
        if idle > MANY_IDLE:
            self._lean = (spent, without(index, [_left(reaches, spent) for reaches in index.reaches]))
        return {number: [*rows, [opened[number], closing[number]]] for number, rows in spans.items()}


def _left(reaches: list[Reach], spent: frozenset[int]) -> list[Reach]:
    """Return the patterns of a literal that are still looked for."""
    return [reach for reach in reaches if reach[0] not in spent] if spent else reaches


def _end(lines: bytes) -> bytes:
    """Return the last lines, enough to hold any match; of a line that is too long, its end."""
    for size in (2 * KEPT, 4 * KEPT, 16 * KEPT):
        start = max(0, len(lines) - size)
        if start == 0 or len(squeeze(lines[start:])) >= KEPT:
            break
    return lines[lines.rfind(b"\n", 0, start) + 1 :] if start and len(lines) - start < LONGEST_KEPT else lines[start:]


def _merge(matches: dict[str, Match], name: str, match: Match, *, counts: bool) -> None:
    known = matches.setdefault(name, match)
    if known is not match and counts:
        known.count = min(known.count + match.count, MOST_COUNTED)
        known.last = max(known.last, match.last)
        known.weight = max(known.weight, match.weight)


def _stands(chunk: Chunk, signature: Signature, pattern: Pattern, span: tuple[int, int], refused: set[Shape]) -> bool:
    """Return whether a match is whole, begins its line where it has to, and its lines are none that do not count.

    Args:
        chunk: the lines.
        signature: whose match it is.
        pattern: what matched.
        span: where, in the squeezed text.
        refused: matches of this pattern that do not count for their own lines; more are added. A log may repeat a
            warning a million times.
    """
    if not (pattern.whole_start or pattern.whole_end or signature.uncaught or signature.unless):
        return True
    shape = chunk.shape(span)
    if shape in refused:
        return False
    refusal = _refusal(chunk, signature, pattern, span)
    if refusal == "own" and shape is not None and not signature.excused_by_number:
        refused.add(shape)
    return refusal is None


def _refusal(chunk: Chunk, signature: Signature, pattern: Pattern, span: tuple[int, int]) -> str | None:
    """Return why a match does not count: for its `own` lines, or for what is `around` them; None where it does."""
    if not _is_whole(chunk, pattern, span) or (signature.uncaught and not _begins_its_line(chunk, span)):
        return "own"
    if signature.uncaught and b"Exception ignored " in chunk.text and is_ignored(_before(chunk, span[0])):
        return "around"
    return _excuse(chunk, signature, span) if signature.unless else None


def _is_whole(chunk: Chunk, pattern: Pattern, span: tuple[int, int]) -> bool:
    """Return whether a match begins and ends at the edges of words in the text, where the pattern asks for it."""
    if not (pattern.whole_start or pattern.whole_end):
        return True
    line, place = chunk.around(span[0])
    if pattern.whole_start and place and _in_word(line[place - 1]):
        return False
    line, place = chunk.around(span[1] - 1)
    after = line[place + 1 : place + 2]
    return not (pattern.whole_end and after and _in_word(after[0]))


def _begins_its_line(chunk: Chunk, span: tuple[int, int]) -> bool:
    """Return whether nothing but decoration, or the program that prints it, stands before a match in its line."""
    line, place = chunk.around(span[0])
    near = line[max(0, place - MOST_BEFORE) : place]  # of a line of a megabyte each match would read all else
    before = _BEFORE_TEXT.sub(b"", _MODULE.sub(b"", near), count=1).strip()
    of_program = line[place : place + 5].lower() in (b"error", b"fatal") and _PROGRAM.fullmatch(before)
    return not before or before[-1] in _DECORATION or before == b"E" or bool(of_program)


def _excuse(chunk: Chunk, signature: Signature, span: tuple[int, int]) -> str | None:
    """Return whether a line that does not count begins in the lines of a match; it may be wrapped into the next.

    What stands before the words excuses, too, so lines are read as they came; colours and a journal's numbers may hide
    a word there, so they are read without decoration as well. `own`: the match's own lines suffice.
    """
    first, last = chunk.line(span[0]), chunk.line(span[1] - 1)
    if not any(_excuses(rows, signature, first, last) for rows in (chunk.printed, chunk.lines)):
        return None
    texts = [squeeze(b"".join(rows[first : last + 1])) for rows in (chunk.printed, chunk.lines)]
    alone = any(one.compiled.search(text) for text in texts for one in signature.exceptions)
    return "own" if alone else "around"


def _excuses(rows: list[bytes], signature: Signature, first: int, last: int) -> bool:
    """Return whether an exception of a signature begins in rows `first` to `last`.

    In the row after them only that the program went on (`GOES_ON`) counts: any other word is of another message.
    """
    own = b"".join(row[: 4 * WIDEST] for row in rows[first : last + 1])
    after = b"".join(row[: 4 * WIDEST] for row in rows[last + 1 : last + 2])
    text, end = squeeze((own + after)[: 4 * WIDEST]), len(squeeze(own))
    for one in signature.exceptions:
        match = one.compiled.search(text)
        if match is not None and (match.start() < end or any(word in one.text.lower() for word in GOES_ON)):
            return True
    return False


def leaning(place: int) -> int:
    """Return under which place the hints of a cause are kept, apart from its signs."""
    return ~place


def _last(spans: list[list[int]], start: int) -> list[list[int]]:
    """Return the parts of spans behind a place."""
    return [[max(first, start), last] for first, last in spans if last > start]


def _in_word(byte: int) -> bool:
    return chr(byte).isalnum() or byte == ord("_")


def _searched(signatures: Iterable[Signature]) -> Iterator[tuple[Signature, int | None, Pattern]]:
    """Yield every pattern with its signature, and with the place of the cause that it is a sign or a hint of."""
    for signature in signatures:
        yield from ((signature, None, pattern) for pattern in signature.patterns)
        for place, cause in enumerate(signature.causes):
            yield from ((signature, place, pattern) for pattern in cause.patterns)
            yield from ((signature, leaning(place), pattern) for pattern in cause.leanings)


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
        text = _readable(*chunk.around(start))
        known = found[signature.id, place] = Match(
            signature=signature, line=line, text=text, weight=weight, last=last,
            context=_context(chunk, start) if signature.values else "",
            packages=_packages(chunk, start) if signature.names_packages else {},
        )  # fmt: skip
    known.weight = max(known.weight, pattern.weight)
    known.last = max(known.last, line)


def _context(chunk: Chunk, start: int) -> str:
    """Return the line of a match from there on, and the two after it, as one text: messages are wrapped."""
    index = chunk.line(start)
    first, place = chunk.around(start)
    rows = (first[max(0, place - LONGEST_SHOWN) :], *chunk.lines[index + 1 : index + 3])
    return " ".join(_readable(row[: 4 * LONGEST_SHOWN], 0) for row in rows)


def _packages(chunk: Chunk, start: int) -> dict[str, str]:
    """Return the packages of the traceback that ends before a match."""
    return packages(_before(chunk, start))


def _before(chunk: Chunk, start: int) -> list[bytes]:
    """Return the lines before a match, as many as a traceback has."""
    index = chunk.line(start)
    return chunk.lines[max(0, index - MOST_LINES) : index]


def _readable(line: bytes, place: int) -> str:
    """Return what stands around a place in a line, fit for a terminal: no control characters, not too long."""
    start = max(0, place - LONGEST_SHOWN // 4) if len(line) > LONGEST_SHOWN else 0
    text = line[start : start + 4 * LONGEST_SHOWN].decode(errors="replace").strip()
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= LONGEST_SHOWN else plain[: LONGEST_SHOWN - 1] + "…"
