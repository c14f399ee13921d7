"""Lines of a log as they are searched, squeezed, and as they came: what stands around a place and is shown of it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from rocmatrix.diagnosis.pattern import squeeze
from rocmatrix.diagnosis.search.places import Places

REACH = 1024  # bytes before and after a place that are looked at: more than is shown of a line
LONGEST_LINE = 1 << 16  # bytes of a line next to those that are searched
LONGEST_SHAPE = 2000  # bytes of the lines of a match that are compared with others
SEAM = b"\x1e"  # in text, where lines were left out
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
LONGEST_SHOWN = 240
# how an entry of its own begins: a time, advice, or a program with its level
_ENTRY = re.compile(
    rb"\s?\[?(?:\d{4}[-/]\d\d[-/]\d\d[ T,]|(?:hint:|Traceback\b))"
    rb"|[\w./+-]{1,200}(?::\d{1,6}){0,2}: (?:fatal )?(?:error|warning|note):"
)
Shape = tuple[int, int, bytes, bytes]  # where a match begins in its lines, its length, and the lines in both forms


@dataclass(frozen=True)
class Chunk:
    """Lines without decoration, from line `first` on; what ends before `known` was seen with the last chunk.

    The last `deferred` lines are judged with the next chunk, as what follows them may excuse them. `raw` are the lines
    as they came, as many as in `text`. Where repeated lines are left out of a search, `text` holds the others, `rows`
    has for each of them its place among all lines, and `view` takes the decoration off others. `whole` is the chunk of
    all lines as they came: what is made of them is made once for all views.
    """

    text: bytes
    first: int
    known: int
    raw: bytes
    rows: tuple[int, ...] = ()
    view: Callable[[bytes], bytes] | None = None
    deferred: int = 0
    whole: Chunk | None = None

    @cached_property
    def printed(self) -> list[bytes]:
        """All lines as they came, with what stands before the words."""
        return self.whole.printed if self.whole else self.raw.split(b"\n")

    def has_line_of(self, size: int) -> bool:
        """Return whether a line as it came has at least `size` bytes, without a look at every line."""
        start, end = 0, len(self.raw)
        while start + size <= end:
            line_end = self.raw.rfind(b"\n", start, start + size)
            if line_end < 0:
                return True
            start = line_end + 1
        return False

    @cached_property
    def squeezed(self) -> bytes:
        """The text as patterns see it; a line's end, which it else has none of, is where lines were left out."""
        return squeeze(self.text).replace(SEAM, b"\n") if self.rows else squeeze(self.text)

    @cached_property
    def _lines(self) -> list[bytes]:
        """The lines without decoration."""
        return self.text.split(b"\n")

    def lines(self, first: int, last: int) -> list[bytes]:
        """Return lines of the whole chunk without decoration, from index `first` to before `last`."""
        if self.view is None:
            return self._lines[first:last]
        rows = [row[:LONGEST_LINE] for row in self.printed[first:last]]
        return self.view(b"\n".join(rows)).split(b"\n") if rows else []

    @cached_property
    def ignores_exceptions(self) -> bool:
        """Whether Python reported an exception here that it ignored; searched once, as a log may hold many matches."""
        return b"Exception ignored " in (self.text if self.view is None else self.raw)

    @cached_property
    def names_a_commit(self) -> bool:
        """Whether git reported here which commit it checked out."""
        return b"HEAD " in self.text

    @cached_property
    def names_a_test(self) -> bool:
        """Whether a runner of tests may have printed names and results here."""
        return any(word in self.text for word in (b"[ RUN ", b" OK ] ", b"Test #", b"Test  #", b".py::"))

    @cached_property
    def warns_as_cmake(self) -> bool:
        """Whether CMake printed a warning here."""
        return b"CMake " in self.text and b"Warning" in self.text

    @cached_property
    def _places(self) -> Places:
        """The index of the text."""
        return Places(self.text)

    @cached_property
    def excuses(self) -> dict[str, dict[tuple[int, int], str | None]]:
        """By a signature's id and the first and last line of a match, whether they excuse it; filled when judged."""
        return {}

    @cached_property
    def _latest(self) -> list[tuple[int, tuple[bytes, int]]]:
        """The last place that was looked at, with what is around it: each match is looked at several times."""
        return []

    def line(self, position: int) -> int:
        """Return the index of the line of a position in the squeezed text."""
        return self._number(self._places.row(position))

    def _number(self, row: int) -> int:
        """Return the index of a line, by its index among those that are searched."""
        return self.rows[row] if self.rows else row

    def tail(self, most: int) -> int:
        """Return where the last `most` lines begin in the squeezed text; without the index of lines where it can be."""
        if self.rows:
            return self._places.start(bisect_left(self.rows, len(self.printed) - 1 - most))
        if most not in self._tails:
            start = len(self.text)
            for _ in range(most + 1):
                start = self.text.rfind(b"\n", 0, max(0, start))
            self._tails[most] = len(self.squeezed) - len(squeeze(self.text[start + 1 :]))
        return self._tails[most]

    @cached_property
    def _tails(self) -> dict[int, int]:
        """Where the last lines begin, by their number: each exception is looked for there."""
        return {}

    def near_end(self, most: int) -> int:
        """Return where the last `most` bytes begin in the squeezed text, or the last `most` of all lines."""
        if not self.rows:
            return max(0, len(self.squeezed) - most)
        row = len(self.printed) - self.raw.count(b"\n", max(0, len(self.raw) - most))
        return self._places.start(bisect_left(self.rows, row))

    @cached_property
    def until(self) -> int:
        """Where in the squeezed text the lines end that are judged with this chunk."""
        if not self.deferred:
            return len(self.squeezed)
        return self._places.start(self.text.count(b"\n") - self.deferred)

    def beginning(self, position: int) -> int:
        """Return where the line of a position begins in the squeezed text."""
        return self._places.start(self._places.row(position))

    def after(self, position: int) -> int:
        """Return where the line after that of a position begins in the squeezed text."""
        return self._places.start(self._places.row(position) + 1)

    def before(self, position: int, most: int) -> list[bytes]:
        """Return the lines before the one of a position in the squeezed text, at most `most`."""
        index = self.line(position)
        return self.lines(max(0, index - most), index)

    def shape(self, span: tuple[int, int]) -> Shape | None:
        """Return what is the same for a match in lines that differ in their digits alone; None where they are long."""
        first, last = self._places.row(span[0]), self._places.row(span[1] - 1)
        printed = b"\n".join(self.printed[self._number(first) : self._number(last) + 1])
        if len(printed) > LONGEST_SHAPE:
            return None
        own = b"\n".join(self._lines[first : last + 1]).translate(_DIGITS)
        place = span[0] - self._places.start(first)
        return (place, span[1] - span[0], own, printed.translate(_DIGITS)) if own else None

    def around(self, position: int) -> tuple[bytes, int]:
        """Return the line of a position in the squeezed text and the place in it; of a long line what is in REACH."""
        if not self._latest or self._latest[0][0] != position:
            self._latest[:] = [(position, self._around(position))]
        return self._latest[0][1]

    def _around(self, position: int) -> tuple[bytes, int]:
        offset = self._places.offset(position)
        lowest, highest = max(0, offset - REACH), offset + REACH
        start = max(lowest, self.text.rfind(b"\n", lowest, offset) + 1)
        end = self.text.find(b"\n", offset, highest)
        return self.text[start : highest if end < 0 else end], offset - start


def context(chunk: Chunk, start: int) -> str:
    """Return the line of a match from there on, and the two after it, as one text: messages are wrapped.

    A line that begins an entry of its own is no part of the message, nor is what follows it.
    """
    index = chunk.line(start)
    first, place = chunk.around(start)
    after = takewhile(lambda row: not _ENTRY.match(row), chunk.lines(index + 1, index + 3))
    rows = (first[max(0, place - LONGEST_SHOWN) :], *after)
    return " ".join(readable(row[: 4 * LONGEST_SHOWN], 0) for row in rows)


def readable(line: bytes, place: int) -> str:
    """Return what stands around a place in a line, fit for a terminal: no control characters, not too long."""
    start = max(0, place - LONGEST_SHOWN // 4) if len(line) > LONGEST_SHOWN else 0
    text = line[start : start + 4 * LONGEST_SHOWN].decode(errors="replace").strip()
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= LONGEST_SHOWN else plain[: LONGEST_SHOWN - 1] + "…"
