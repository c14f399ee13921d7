"""Errors a person can act on: what, where, why, next step, under a stable code.

The catalog is the source of `docs/errors.md`. Codes are never reused: RM0xx matrix and resolving,
RM1xx rendering and locks, RM2xx engine, build and launch, RM3xx hardware, RM4xx the wrapper and the
native environment, RM6xx evidence and the nightly. RM5xx belong to the trainer, which keeps its own catalog.
`codes/` holds them by topic.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rocmatrix.runtime.codes.bytes import BYTES
from rocmatrix.runtime.codes.entry import CatalogEntry, catalog
from rocmatrix.runtime.codes.hosts import HOSTS
from rocmatrix.runtime.codes.images import IMAGES
from rocmatrix.runtime.codes.matrix import MATRIX
from rocmatrix.runtime.codes.records import RECORDS

__all__ = ["CATALOG", "CatalogEntry", "RocmatrixError", "nearest", "suggestion"]

CATALOG = catalog(MATRIX, IMAGES, HOSTS, RECORDS, BYTES)


class RocmatrixError(Exception):
    """A failure with a stable code. `str()` gives the lines a person reads."""

    def __init__(self, code: str, *, what: str, where: str = "", why: str = "", next: str = "") -> None:
        entry = CATALOG[code]
        self.code, self.title = code, entry.title
        self.what, self.where, self.why, self.next = what, where, why, next or entry.next
        super().__init__(self.render())

    @property
    def brief(self) -> str:
        """The error in one line, for a table or a journal."""
        place = f" ({self.where})" if self.where else ""
        return " ".join(f"{self.code} {self.what}{place}".split())

    def render(self) -> str:
        """Return the error as lines: code and title, then each part that is known."""
        parts = {"what": self.what, "where": self.where, "why": self.why, "hint": self.next}
        lines = [f"{self.code} {self.title}"]
        lines += [f"  {label + ':':<6} {_indent(text)}" for label, text in parts.items() if text]
        return "\n".join(lines)


def _indent(text: str) -> str:
    return text.replace("\n", "\n         ")


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Return up to `most` known names that resemble `name`, best first, letter case ignored.

    Args:
        name: the unknown name.
        known: the names that are accepted.
        most: length of the result at most.
    """

    def resemblance(candidate: str) -> tuple[float, int]:
        # Names of chips differ by one digit, which the ratio alone cannot rank: same places break ties.
        typed, folded = name.casefold(), candidate.casefold()
        ratio = difflib.SequenceMatcher(None, typed, folded).ratio()
        return ratio, sum(a == b for a, b in zip(typed, folded, strict=False))

    ranked = sorted(known, key=resemblance, reverse=True)
    return [candidate for candidate in ranked[:most] if resemblance(candidate)[0] >= 0.5]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …" for an unknown name, or the whole list where nothing comes near."""
    known = list(known)
    hits = nearest(name, known)
    return f"did you mean {' or '.join(hits)}?" if hits else f"known: {', '.join(known)}"
