"""The last number that an evidence file gave, kept in the file and in another next to it.

A record that is removed leaves a gap in the numbers, but for the newest; that one is missed by its number here.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path


def companion(path: Path) -> Path:
    """Return the file next to the evidence file that holds its series and last number."""
    return path.with_name(f"{path.name}.head")


def last(path: Path, series: str | None = None) -> int:
    """Return the last number that the file next to it names for this series; 0 where it names none.

    Args:
        path: the evidence file.
        series: name of the file's own series; None for any, where the file that would state it is gone.
    """
    try:
        return _number(companion(path).read_text(encoding="ascii"), series)
    except (OSError, ValueError):
        return 0


def keep(path: Path, series: str, number: int) -> None:
    """Write series and number next to the evidence file, where it names none as high; the record stands without it.

    Args:
        path: the evidence file.
        series: name of the file's own series.
        number: the last number that was given.
    """
    try:
        with os.fdopen(os.open(companion(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _number(file.read(200).decode(errors="replace"), series) < number:
                file.seek(0)
                file.truncate()
                file.write(f"{series} {number}\n".encode())
    except OSError:
        return


def in_file(connection: sqlite3.Connection, path: Path | None = None) -> int:
    """Return the last number by the file's table, and with `path` by the file next to it, too.

    Args:
        connection: the evidence file, opened, of version `schema.NUMBERED` or later.
        path: the evidence file; None for its table alone.
    """
    there = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'head'").fetchone()[0]
    number = connection.execute("SELECT max(number) FROM head").fetchone()[0] if there else 0
    return max(int(number or 0), last(path, own(connection)) if path else 0)


def own(connection: sqlite3.Connection) -> str:
    """Return the name of the file's own series."""
    return str(connection.execute("SELECT name FROM series").fetchone()[0])


def _number(text: str, series: str | None) -> int:
    name, _, number = text.strip().partition(" ")
    return int(number) if series in (None, name) and number.isascii() and number.isdigit() else 0
