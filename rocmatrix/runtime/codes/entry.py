"""The texts of one error code, and how the topics' entries make a catalog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One stable code: its title, what it means, and the usual way out."""

    code: str
    title: str
    meaning: str
    next: str


def entries(*rows: tuple[str, str, str, str]) -> tuple[CatalogEntry, ...]:
    """Return rows of code, title, meaning and next step as entries, in the same order."""
    return tuple(CatalogEntry(code=code, title=t, meaning=m, next=n) for code, t, m, n in rows)


def catalog(*topics: Iterable[CatalogEntry]) -> dict[str, CatalogEntry]:
    """Return the entries of all topics by their code, in numeric order."""
    known = [entry for topic in topics for entry in topic]
    return {entry.code: entry for entry in sorted(known, key=lambda entry: entry.code)}
