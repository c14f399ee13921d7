"""Listings of folders of /proc and /sys, whose entries vanish while they are read: a process ends, a card is reset."""

from __future__ import annotations

from pathlib import Path


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths of `folder` that match, sorted; none where an entry disappears while it is listed.

    Path.glob() raises FileNotFoundError then, until Python 3.13.

    Args:
        folder: where the search begins; it may be absent.
        pattern: as for Path.glob().
    """
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []
