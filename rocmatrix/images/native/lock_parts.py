"""A lock in parts, which several pips install side by side: one alone takes one core, mostly for unpacking."""

from __future__ import annotations

import re

_BEGIN = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)  # of an entry; its hashes and comments are further in


def parts_of(lock: str, count: int) -> list[str]:
    """Return the entries of a lock as `count` locks of about as many entries each; fewer where it has fewer.

    Entries that follow each other go into different parts: a package and its companions, which are as large, are
    often neighbours in a sorted lock.

    Args:
        lock: text of a requirements file in which each entry begins its line, and names all its hashes.
        count: how many parts, 1 or more.
    """
    entries = [entry if entry.endswith("\n") else f"{entry}\n" for entry in _BEGIN.split(lock) if entry[:1].isalnum()]
    return ["".join(entries[first::count]) for first in range(min(count, len(entries)))]
