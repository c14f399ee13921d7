"""What is shown of a match: its line, fit for a terminal, and the message that it begins, for values."""

from __future__ import annotations

import re
from itertools import takewhile

from rocmatrix.diagnosis.search.chunk import Chunk

LONGEST_SHOWN = 240
# how an entry of its own begins: a time, advice, or a program with its level
_ENTRY = re.compile(
    rb"\s?\[?(?:\d{4}[-/]\d\d[-/]\d\d[ T,]|(?:hint:|Traceback\b))"
    rb"|[\w./+-]{1,200}(?::\d{1,6}){0,2}: (?:fatal )?(?:error|warning|note):"
)


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
