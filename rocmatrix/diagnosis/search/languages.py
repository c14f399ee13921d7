"""Messages of the system in other languages, in the English that patterns are written in.

languages.json has, by the English text, what the translations of glibc, bash, apt, dpkg and rpm print in its place;
`{}` stands for a name, a path or a number.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rocmatrix.diagnosis.log_prefixes import views

MOST = 1 << 20  # bytes: a longer text is left as it is, as a look for every message would double the time of a search
_NAME = rb"([^\s\n]{1,200})"


@dataclass(frozen=True, kw_only=True)
class Translation:
    """One message: `fixed` is its longest text without names, `written` matches the whole, `english` replaces it."""

    fixed: bytes
    written: bytes
    english: bytes


def english(text: bytes) -> bytes:
    """Return a text with the known messages of the system in English. No line is added or removed."""
    if len(text) > MOST:
        return text
    for row in _plain() if text.isascii() else _all():
        if row.fixed in text:
            text = re.sub(row.written, row.english, text)
    return text


def readings(lines: bytes, translated: bool) -> tuple[bytes, ...]:
    """Return whole lines without decoration, in one or two ways; in English where asked for."""
    return views(english(lines) if translated else lines)


def reading(number: int, translated: bool, lines: bytes) -> bytes:
    """Return one of the ways in which whole lines are read, or the only one.

    Args:
        number: 0 for the first way.
        translated: whether messages of the system are put in English.
        lines: whole lines.
    """
    found = readings(lines, translated)
    return found[min(number, len(found) - 1)]


@cache
def _plain() -> tuple[Translation, ...]:
    return tuple(row for row in _all() if row.fixed.isascii())


@cache
def _all() -> tuple[Translation, ...]:
    """Return the messages, long ones first: a short one may be a part of them."""
    made = json.loads(Path(__file__).with_name("languages.json").read_text(encoding="utf-8"))
    rows = [(local, text) for text, locals_ in made.items() for local in locals_]
    return tuple(_row(local, text) for local, text in sorted(rows, key=lambda row: -len(row[0])))


def _row(local: str, text: str) -> Translation:
    parts = [part.encode() for part in local.split("{}")]
    written, place = _NAME.join(map(re.escape, parts)), iter(range(1, len(parts)))
    form = re.sub(r"\{\}", lambda _: rf"\g<{next(place, 1)}>", text.replace("\\", r"\\"))
    return Translation(fixed=max(parts, key=len), written=written, english=form.encode())
