"""Shell text as lines with what continues them, and as the words of each command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_KEPT = 1 << 16  # lines of which the words are kept
SEPARATORS = {"&&", "||", ";", ";;", "|", "&"}
# what a shell runs first and puts in as words; parentheses within it are matched one level deep
_SUBSTITUTION = re.compile(r"\$\((?:[^()\n]|\([^()\n]{0,200}\)){0,400}\)|`[^`\n]{0,400}`")
_SHELL = " \t|;&<>#\"'\\"  # characters that end a word or change its meaning
_MASKED = {ord(one): chr(0xE000 + at) for at, one in enumerate(_SHELL)}  # by characters of private use
_UNMASKED = {ord(mask): chr(one) for one, mask in _MASKED.items()}
_WITHIN = re.compile(r"(?<=[^\s;|&])#")  # begins no comment: the end of an address, or $#


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of shell with what continues it, its number, and the rows of the file that it spans."""

    text: str
    number: int
    rows: tuple[str, ...] = ()


def lines(script: str) -> Iterator[Line]:
    """Yield a script's lines, each with what a backslash continues; comments are left out."""
    text, start = "", 0
    rows = script.splitlines()
    for number, row in enumerate(rows, 1):
        start = start or number
        text += row.rstrip("\\") if row.endswith("\\") else row
        if row.endswith("\\"):
            text += " "
            continue
        if text.strip() and not text.lstrip().startswith("#"):
            yield Line(text=text.strip(), number=start, rows=tuple(rows[start - 1 : number]))
        text, start = "", 0


def parts(text: str, needed: str = "") -> Iterator[list[str]]:
    """Yield the words of each command in a line of shell; what $(...) or backticks stand for is part of a word.

    Args:
        text: the line.
        needed: what it has to hold, else nothing of it matters and it is not divided.
    """
    if needed in text:
        yield from map(list, _parts(text))


@lru_cache(maxsize=_KEPT)
def _parts(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command; every rule asks for them, and to divide a line is slow."""
    found: list[list[str]] = [[]]
    for word in split(text):
        if word in SEPARATORS:
            found.append([])
        else:
            found[-1].append(word)
    return tuple(map(tuple, found))


def split(text: str) -> list[str]:
    """Return the words of a line of shell; a semicolon or a bar is a word of its own, also behind another one."""
    text = _SUBSTITUTION.sub(lambda match: match[0].translate(_MASKED), text)
    reader = shlex.shlex(_WITHIN.sub(_MASKED[ord("#")], text), posix=True, punctuation_chars=";|")
    reader.whitespace_split = True
    try:
        return [word.translate(_UNMASKED) for word in reader]
    except ValueError:  # a quote that is not closed
        return [word.translate(_UNMASKED) for word in text.split()]
