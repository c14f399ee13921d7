"""Records in and out of the SQLite file. Adding one twice is adding it once."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rocmatrix.evidence import schema
from rocmatrix.evidence.record import Record
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError

HERE = "this machine"
_told: set[Path] = set()


def add(path: Path, records: Iterable[Record], *, origin: str = HERE) -> int:
    """Add records in one transaction; return how many were new. Raises what opening does."""
    with schema.opened(path, write=True) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            new = sum(_added(connection, record, origin) for record in records)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
    return new


def _added(connection: sqlite3.Connection, record: Record, origin: str) -> int:
    body = json.dumps(record.model_dump(mode="json", exclude={"log"}), ensure_ascii=False)
    row = (record.id, record.at, record.cell, record.kind, body, zlib.compress(record.log.encode()), origin)
    return connection.execute("INSERT OR IGNORE INTO record VALUES (?, ?, ?, ?, ?, ?, ?)", row).rowcount


def keep(path: Path, record: Record) -> bool:
    """Add a record of a job that has ended; where that cannot be, say so once under RM620 and go on.

    The job's own outcome is never touched by a store that is full, read-only, locked or not ours.
    """
    try:
        add(path, [record])
    except (sqlite3.Error, OSError, RocmatrixError) as error:
        if path not in _told:
            _told.add(path)
            why = error.what if isinstance(error, RocmatrixError) else str(error)
            told = RocmatrixError("RM620", what=f"the {record.kind} of {record.cell}", where=str(path), why=why)
            say(told.render())
        return False
    return True


def read(path: Path, *, cell: str | None = None, logs: bool = True) -> list[Record]:
    """Return the records, of one cell or all, oldest first; none where there is no file.

    `logs` may be left out, which reads faster: their hash then differs. Raises RM621 for what is no record.
    """
    return [record for _, record in rows(path, cell=cell, logs=logs)]


def rows(path: Path, *, cell: str | None = None, logs: bool = True) -> Iterator[tuple[str, Record]]:
    """Yield (origin, record), oldest first. Raises RM621."""
    if not path.is_file():
        return
    with schema.opened(path, write=False) as connection:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            return
        where, values = ("WHERE cell = ?", (cell,)) if cell else ("", ())
        log = "log" if logs else "NULL"
        for body, packed, origin in connection.execute(
            f"SELECT body, {log}, origin FROM record {where} ORDER BY at, id", values
        ):
            yield origin, _record(body, packed, path)


def _record(body: str, packed: bytes | None, path: Path) -> Record:
    try:
        data = json.loads(body)
        log = zlib.decompress(packed).decode() if packed is not None else ""
        return Record.model_validate_json(json.dumps(data | {"log": log}))
    except (ValueError, TypeError, RecursionError, zlib.error) as error:
        raise RocmatrixError("RM621", what=f"a record cannot be read: {error}", where=str(path)) from error
