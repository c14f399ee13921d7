"""The terms of a text by which logs are compared: words, names with their parts, and numbers."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"0x[0-9a-f]{5,32}")  # differs from run to run
_TERM = re.compile(r"[a-z_][a-z0-9_+.\-/:]{0,200}[a-z0-9_+]|\d{1,5}\.\d{1,5}(?:\.\d{1,5})?|-?\d{1,5}")
_SEPARATORS = re.compile(r"[_./:\-+]+")
_COMMON = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "does", "for", "from", "has", "have", "in", "is", "it", "its",
    "no", "not", "of", "on", "or", "that", "the", "this", "to", "was", "where", "which", "with",
))  # fmt: skip


def terms(text: str) -> set[str]:
    """Return the terms of a text; a name such as `hip::device` or a path also stands for each of its parts."""
    found: set[str] = set()
    for term in _TERM.findall(_ADDRESS.sub(" ", text.lower())):
        parts = [part for part in _SEPARATORS.split(term) if len(part) > 1]
        found.update((term, *parts) if len(parts) > 1 else (term,))
    return {term for term in found if len(term) > 1 and term not in _COMMON}
