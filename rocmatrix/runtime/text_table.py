"""Tables for a terminal of any width: columns where they fit, else a few lines a row; no name is ever cut."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import TextWrapper

GAP = 2  # columns between two cells
SHORT = 28  # longest cell of a column that is never wrapped
LEAST = 24  # columns that a wrapped column needs at least
DEEPER = " " * 7  # in front of what continues a line
PLAIN_WIDTH = 160  # where there is no terminal


def width() -> int:
    """Return the columns of standard output's terminal, PLAIN_WIDTH where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH


def lines(head: Sequence[str], rows: Iterable[Sequence[str]], *, width: int) -> list[str]:
    """Return a table as lines: a line a row, long texts wrapped; where that is too wide, each row as a paragraph.

    Args:
        head: names of the columns.
        rows: cells of each row, as many as `head` has names; the first one names the row.
        width: columns that the lines may take.
    """
    cells = [[*map(str, row)] for row in rows]
    widths = _widths([[*head], *cells], width)
    if widths is None:
        return [line for row in cells for line in _paragraph(head, row, width)]
    return [line for row in ([*head], *cells) for line in _row(row, widths)]


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column; None where names and numbers leave too little room for the texts."""
    natural = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(natural) + GAP * (len(natural) - 1) <= width:
        return natural
    wrapped = [place for place, most in enumerate(natural) if most > SHORT and place]
    fixed = sum(most for place, most in enumerate(natural) if place not in wrapped)
    room = width - fixed - GAP * (len(natural) - 1)
    if not wrapped or room < LEAST * len(wrapped):
        return None
    for place, share in zip(wrapped, _shares([natural[place] for place in wrapped], room), strict=True):
        natural[place] = share
    return natural


def _shares(widths: Sequence[int], room: int) -> list[int]:
    """Part the room among texts: none gets more than it wants, the longest ones share what is left evenly."""
    order, left, shares = sorted(range(len(widths)), key=lambda place: widths[place]), room, [0] * len(widths)
    for rank, place in enumerate(order):
        shares[place] = min(widths[place], left // (len(order) - rank))
        left -= shares[place]
    return shares


def _row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    columns = [wrapped(cell, most) for cell, most in zip(row, widths, strict=True)]
    for parts in zip_longest(*columns, fillvalue=""):
        yield (" " * GAP).join(part.ljust(most) for part, most in zip(parts, widths, strict=True)).rstrip()


def _paragraph(head: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    yield row[0]
    rest = [f"{name.lower()} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell.strip(" -")]
    line = ""
    for text in rest:
        if line and len(line) + GAP + len(text) <= width - GAP:
            line += " " * GAP + text
            continue
        yield from _hanging(line, width)
        line = text
    yield from _hanging(line, width)


def _hanging(text: str, width: int) -> list[str]:
    margin = " " * GAP
    return [margin + line for line in wrapped(text, max(width - GAP, 1))]


def wrapped(text: str, most: int) -> list[str]:
    """Return the lines of a text, wrapped at blanks alone: a longer name stays whole, and the terminal folds it.

    Args:
        text: lines of text.
        most: columns of a line.
    """
    parts = (
        TextWrapper(max(most, 1), break_long_words=False, break_on_hyphens=False).wrap(p) for p in text.split("\n")
    )
    return [line for part in parts for line in part]


def folded(lines: Iterable[str]) -> list[str]:
    """Return lines as wide as the terminal, continued below their text; a pipe gets each whole, for `grep`."""
    if not sys.stdout.isatty():
        return [*lines]
    room = width() - len(DEEPER)
    parts = [(line[: len(line) - len(line.lstrip())], wrapped(line.lstrip(), room) or [""]) for line in lines]
    return [margin + part for begin, found in parts for margin, part in zip_longest([begin], found, fillvalue=DEEPER)]
