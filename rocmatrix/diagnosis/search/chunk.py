"""Lines of a log with an index from squeezed text to the text itself: a place costs the same in a line of any length.

The index counts the kept bytes before every `STEP` bytes and before every line, once for a chunk. A place is found by
bisection among these counts and then by counting within one step.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress, islice

from rocmatrix.diagnosis.pattern import DROPPED, squeeze

STEP = 256  # bytes of text between two entries of the index
REACH = 1024  # bytes before and after a place that are looked at: more than is shown of a line
LONGEST_LINE = 1 << 16  # bytes of a line next to those that are searched
LONGEST_SHAPE = 2000  # bytes of the lines of a match that are compared with others
SEAM = b"\x1e"  # in text, where lines were left out
_DROPPED_IN_LINES = DROPPED.replace(b"\n", b"")
_IS_KEPT = bytes(byte not in DROPPED for byte in range(256))
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
Shape = tuple[int, int, bytes, bytes]  # where a match begins in its lines, its length, and the lines in both forms


@dataclass(frozen=True)
class Chunk:
    """Lines without decoration, from line `first` on; what ends before `known` was seen with the last chunk.

    The last `deferred` lines are judged with the next chunk, as what follows them may excuse them. `raw` are the lines
    as they came, as many as in `text`. Where repeated lines are left out of a search, `text` holds the others, `rows`
    has for each of them its place among all lines, and `view` takes the decoration off others.
    """

    text: bytes
    first: int
    known: int
    raw: bytes
    rows: tuple[int, ...] = ()
    view: Callable[[bytes], bytes] | None = None
    deferred: int = 0

    @cached_property
    def printed(self) -> list[bytes]:
        """All lines as they came, with what stands before the words."""
        return self.raw.split(b"\n")

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
    def _kept(self) -> list[int]:
        """How many bytes of the squeezed text stand before each step."""
        steps = (self.text[start : start + STEP] for start in range(0, len(self.text), STEP))
        return list(accumulate((len(step.translate(None, DROPPED)) for step in steps), initial=0))

    @cached_property
    def starts(self) -> list[int]:
        """How many bytes of the squeezed text stand before each line of it."""
        return list(accumulate(map(len, self.text.translate(None, _DROPPED_IN_LINES).split(b"\n")), initial=0))

    @cached_property
    def excuses(self) -> dict[str, dict[tuple[int, int], str | None]]:
        """By a signature's id and the first and last line of a match, whether they excuse it; filled when judged."""
        return {}

    @cached_property
    def _latest(self) -> list[tuple[int, tuple[bytes, int]]]:
        """The last place that was looked at, with what is around it: each match is looked at several times."""
        return []

    def offset(self, position: int) -> int:
        """Return the place in the text of a byte of the squeezed text."""
        step = bisect_right(self._kept, position) - 1
        start = step * STEP
        kept = compress(range(STEP), self.text[start : start + STEP].translate(_IS_KEPT))
        return start + next(islice(kept, position - self._kept[step], None), 0)

    def line(self, position: int) -> int:
        """Return the index of the line of a position in the squeezed text."""
        row = self._row(position)
        return self.rows[row] if self.rows else row

    def _row(self, position: int) -> int:
        """Return the index of a line of a position among those that are searched."""
        return bisect_right(self.starts, position, hi=len(self.starts) - 1) - 1

    def tail(self, most: int) -> int:
        """Return where the last `most` lines begin in the squeezed text; without the index of lines where it can be."""
        if self.rows:
            return self.starts[bisect_left(self.rows, len(self.printed) - 1 - most)]
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
        return self.starts[bisect_left(self.rows, row)]

    @cached_property
    def until(self) -> int:
        """Where in the squeezed text the lines end that are judged with this chunk."""
        return self.starts[max(0, len(self.starts) - 2 - self.deferred)] if self.deferred else len(self.squeezed)

    def after(self, position: int) -> int:
        """Return where the line after that of a position begins in the squeezed text."""
        return self.starts[self._row(position) + 1]

    def before(self, position: int, most: int) -> list[bytes]:
        """Return the lines before the one of a position in the squeezed text, at most `most`."""
        index = self.line(position)
        return self.lines(max(0, index - most), index)

    def shape(self, span: tuple[int, int]) -> Shape | None:
        """Return what is the same for a match in lines that differ in their digits alone; None where they are long."""
        first, last = self._row(span[0]), self._row(span[1] - 1)
        printed = b"\n".join(self.printed[self.line(span[0]) : self.line(span[1] - 1) + 1])
        if len(printed) > LONGEST_SHAPE:
            return None
        own = b"\n".join(self._lines[first : last + 1]).translate(_DIGITS)
        return (span[0] - self.starts[first], span[1] - span[0], own, printed.translate(_DIGITS)) if own else None

    def around(self, position: int) -> tuple[bytes, int]:
        """Return the line of a position in the squeezed text and the place in it; of a long line what is in REACH."""
        if not self._latest or self._latest[0][0] != position:
            self._latest[:] = [(position, self._around(position))]
        return self._latest[0][1]

    def _around(self, position: int) -> tuple[bytes, int]:
        offset = self.offset(position)
        lowest, highest = max(0, offset - REACH), offset + REACH
        start = max(lowest, self.text.rfind(b"\n", lowest, offset) + 1)
        end = self.text.find(b"\n", offset, highest)
        return self.text[start : highest if end < 0 else end], offset - start
