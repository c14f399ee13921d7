"""An index from squeezed text to the text itself and its lines, made only around the places that are looked up.

Kept bytes and ends of lines are counted once before every part of a text, and within a part where a place of it is
looked up: most logs have few matches. A place costs the same in a line of any length.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate, compress, islice

from rocmatrix.diagnosis.pattern import DROPPED

PART = 1 << 14  # bytes of text that are indexed at once
STEP = 256  # bytes of text between two entries of the index
_DROPPED_IN_LINES = DROPPED.replace(b"\n", b"")
_SMALL = bytes(range(256)).lower()
_IS_KEPT = bytes(byte not in DROPPED for byte in range(256))


class Places:
    """Where bytes of a text's squeezed form, by their number, stand in the text and in which line."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._steps: dict[int, list[int]] = {}
        self._breaks: dict[int, list[int]] = {}

    @cached_property
    def _kept(self) -> list[int]:
        """How many bytes of the squeezed text stand before each part, and in all."""
        return list(accumulate(map(_size, _pieces(self._text, 0, len(self._text), PART)), initial=0))

    @cached_property
    def _lines(self) -> list[int]:
        """How many lines end before each part, and in all."""
        starts = range(0, len(self._text), PART)
        return list(accumulate((self._text.count(b"\n", at, at + PART) for at in starts), initial=0))

    def offset(self, position: int) -> int:
        """Return the place in the text of a byte of the squeezed text."""
        part = self._part(position)
        if part not in self._steps:
            first = part * PART
            sizes = map(_size, _pieces(self._text, first, first + PART, STEP))
            self._steps[part] = list(accumulate(sizes, initial=self._kept[part]))
        kept = self._steps[part]
        step = bisect_right(kept, position) - 1
        start = part * PART + step * STEP
        places = compress(range(STEP), self._text[start : start + STEP].translate(_IS_KEPT))
        return start + next(islice(places, position - kept[step], None), 0)

    def row(self, position: int) -> int:
        """Return the index of the line that a byte of the squeezed text stands in."""
        part = self._part(position)
        breaks = self._breaks.get(part)
        return self._lines[part] + bisect_right(self._broken(part) if breaks is None else breaks, position)

    def start(self, row: int) -> int:
        """Return how many bytes of the squeezed text stand before a line; of one behind the last, all."""
        if row > self._lines[-1]:
            return self._kept[-1]
        if row <= 0:
            return 0
        part = bisect_right(self._lines, row - 1) - 1
        return self._broken(part)[row - 1 - self._lines[part]]

    def _part(self, position: int) -> int:
        return max(0, bisect_right(self._kept, position, 0, len(self._kept) - 1) - 1)

    def _broken(self, part: int) -> list[int]:
        """Return how many bytes of the squeezed text stand before each end of a line within a part."""
        if part not in self._breaks:
            lines = squeezed_lines(self._text[part * PART : (part + 1) * PART])
            self._breaks[part] = list(accumulate(map(len, lines[:-1]), initial=self._kept[part]))[1:]
        return self._breaks[part]


def squeezed_lines(text: bytes) -> list[bytes]:
    """Return the lines of a text as patterns see them; joined they are the squeezed text."""
    return text.translate(_SMALL, _DROPPED_IN_LINES).split(b"\n")


def _pieces(text: bytes, start: int, end: int, size: int) -> list[bytes]:
    return [text[at : min(at + size, end)] for at in range(start, min(end, len(text)), size)]


def _size(text: bytes) -> int:
    return len(text.translate(None, DROPPED))
