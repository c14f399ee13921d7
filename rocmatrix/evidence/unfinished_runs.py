"""Runs that were started and have no record yet. One whose program is gone counts as failed.

A machine that a card takes down, or a program that is killed, writes no record of its own; what was noted before the
run becomes one then.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rocmatrix.evidence import schema, store
from rocmatrix.evidence.record import Record
from rocmatrix.runtime import process_name

ELSEWHERE = timedelta(days=7)  # after this long a run of another machine is taken for lost, too


def begin(path: Path, lost: Record) -> int:
    """Note a run that is about to start; `lost` is its record should nothing come back. Return its token.

    Runs that were lost before become records first, so that they stand before this one.
    """
    with schema.opened(path, write=True) as connection, schema.transaction(connection):
        _settle(connection)
        row = (process_name.host(), process_name.boot(), process_name.process(os.getpid()), lost.at, _packed(lost))
        cursor = connection.execute("INSERT INTO started (host, boot, process, at, body) VALUES (?, ?, ?, ?, ?)", row)
        return int(cursor.lastrowid or 0)


def end(path: Path, token: int, record: Record) -> None:
    """Write the run's record in the place of the note.

    Args:
        path: the evidence file.
        token: number of the note, as `begin` returned it.
    """
    with schema.opened(path, write=True) as connection, schema.transaction(connection):
        connection.execute("DELETE FROM started WHERE token = ?", (token,))
        store.insert(connection, [record])


def forget(path: Path, token: int) -> None:
    """Take the note back: nothing was run."""
    with schema.opened(path, write=True) as connection, schema.transaction(connection):
        connection.execute("DELETE FROM started WHERE token = ?", (token,))


def settle(path: Path) -> int:
    """Make records of the runs that were lost; return how many. Nothing is written where there are none."""
    if not schema.is_there(path) or not _any(path):
        return 0
    with schema.opened(path, write=True) as connection, schema.transaction(connection):
        return _settle(connection)


def _any(path: Path) -> bool:
    with schema.opened(path, write=False) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] < schema.NUMBERED:
            return False
        return bool(connection.execute("SELECT count(*) FROM started").fetchone()[0])


def _settle(connection: sqlite3.Connection) -> int:
    rows = connection.execute("SELECT token, host, boot, process, at, body FROM started ORDER BY token").fetchall()
    lost = [(row[0], _unpacked(row[-1])) for row in rows if _is_lost(*row[1:5])]
    readable = [(token, record) for token, record in lost if record is not None]
    for token, record in readable:
        connection.execute("DELETE FROM started WHERE token = ?", (token,))
        store.insert(connection, [record])
    return len(readable)


def _unpacked(body: bytes) -> Record | None:
    """Return the record of a note; None for one of a newer program, which is left for that to read."""
    try:
        return Record.model_validate_json(zlib.decompress(body))
    except (ValueError, zlib.error):
        return None


def _is_lost(host: str, boot: str, process: str, at: str) -> bool:
    if host != process_name.host():
        begun = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        return datetime.now(UTC) - begun > ELSEWHERE
    return boot != process_name.boot() or not process_name.runs(process)


def _packed(record: Record) -> bytes:
    return zlib.compress(json.dumps(record.content()).encode())
