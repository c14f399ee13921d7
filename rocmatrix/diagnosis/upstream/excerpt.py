"""Excerpt of a log for a report: its first lines, those around a failure, and its last ones."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rocmatrix.diagnosis.log_prefixes import views

AROUND, FIRST = 12, 120
LONGEST = 400
_TROUBLE = re.compile(rb"(?i)error|failed|failure|exception|traceback|fatal|abort|segfault|killed")


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """Lines of a log without colours: `quoted` around the failure, from line `first` on; `head` is the start."""

    head: tuple[str, ...]
    quoted: tuple[str, ...]
    first: int


def excerpt(blocks: Iterable[bytes], line: int | None) -> Excerpt:
    """Return what to quote: around `line`, else around the first line that reports an error, else the end."""
    head: list[str] = []
    before: deque[bytes] = deque(maxlen=AROUND)
    quoted: list[str] = []
    at = number = 0
    for number, row in enumerate(_rows(blocks), 1):
        if number <= FIRST:
            head.append(_readable(row))
        if not at and (number == line if line else _TROUBLE.search(row)):
            at, quoted = number, [_readable(old) for old in before]
        if at and number <= at + AROUND:
            quoted.append(_readable(row))
        before.append(row)
    if not at:
        quoted = [_readable(old) for old in before]
    return Excerpt(head=tuple(head), quoted=tuple(quoted), first=max(1, (at or number + 1) - AROUND))


def _rows(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        yield from block.removesuffix(b"\n").split(b"\n")


def _readable(row: bytes) -> str:
    """Return a line for a page: colours and control characters gone, not too long."""
    text = views(row[: 4 * LONGEST])[-1].decode(errors="replace").rstrip()
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
