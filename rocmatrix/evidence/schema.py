"""The SQLite file that holds the records: opening it, and migrating an older one.

Write-ahead logging lets readers and one writer work side by side; a second writer waits. A writer that is killed
leaves nothing half-written: each change is one transaction.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rocmatrix.evidence.counted import head
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import expanded

VARIABLE = "ROCMATRIX_EVIDENCE"
WAIT_SECONDS = 30.0
APPLICATION = 0x524D4556  # "RMEV", in the file's header: another program's database is not taken for ours
# One step a version of the file; a step that was released is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE record (
            id TEXT PRIMARY KEY, at TEXT NOT NULL, cell TEXT NOT NULL, kind TEXT NOT NULL,
            body TEXT NOT NULL, log BLOB NOT NULL, origin TEXT NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX record_by_cell ON record (cell, at)",
    ),
    (
        "CREATE TABLE night (name TEXT PRIMARY KEY, plan TEXT NOT NULL, began TEXT NOT NULL, ended TEXT)",
        """CREATE TABLE leg (
            night TEXT NOT NULL REFERENCES night (name), cell TEXT NOT NULL, stage TEXT NOT NULL, state TEXT NOT NULL,
            at TEXT NOT NULL, words TEXT NOT NULL, PRIMARY KEY (night, cell, stage)
        ) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE record ADD COLUMN series TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE record ADD COLUMN number INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE series (name TEXT PRIMARY KEY)",
        "INSERT INTO series VALUES (lower(hex(randomblob(16))))",
        # Records of before stand in the order of their times, those of each imported file by themselves.
        """UPDATE record SET series =
            CASE origin WHEN 'this machine' THEN (SELECT name FROM series) ELSE 'file ' || origin END""",
        """UPDATE record SET number = (
            SELECT count(*) FROM record AS other
            WHERE other.series = record.series AND (other.at, other.id) <= (record.at, record.id)
        )""",
        "CREATE INDEX record_by_number ON record (series, number)",
        """CREATE TABLE started (
            token INTEGER PRIMARY KEY, host TEXT NOT NULL, boot TEXT NOT NULL, process TEXT NOT NULL, at TEXT NOT NULL,
            body TEXT NOT NULL
        )""",
    ),
    (
        "CREATE TABLE head (number INTEGER NOT NULL)",  # the last number that this file's own series has given
        """INSERT INTO head SELECT coalesce(max(number), 0) FROM record
            WHERE series = (SELECT name FROM series) AND origin = 'this machine'""",
    ),
)
NUMBERED = 3  # the version that knows a record's place
HEADED = 4  # the version that knows the last number given


def default_file(root: Path) -> Path:
    """Return where evidence is kept: ROCMATRIX_EVIDENCE, else .rocmatrix/evidence.db of the checkout."""
    named = os.environ.get(VARIABLE)
    return expanded(named).resolve() if named else root / ".rocmatrix" / "evidence.db"


def is_there(path: Path) -> bool:
    """Return whether there is an evidence file.

    Raises:
        RocmatrixError: RM621 for a folder, a pipe or a device: it holds no records, but not because none were made.
    """
    if path.exists() and not path.is_file():
        raise RocmatrixError("RM621", what="this is no file", where=str(path))
    return path.is_file()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Let changes be made together, or none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise


@contextmanager
def opened(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    """Open the file, made and brought up to date where `write`. Raises RM621 for a file that is not ours.

    Also raises sqlite3.Error and OSError: a full disk, a read-only place.
    """
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection = _connected(path, write=write)
    try:
        _version(connection, path)  # before anything is changed: another program may have made the file
        if write:
            _log_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            _migrate(connection, path)
        yield connection
        if write and _version(connection, path) >= HEADED:
            head.keep(path, head.own(connection), head.in_file(connection))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname == "SQLITE_NOTADB":
            raise RocmatrixError("RM621", what="the file is no SQLite database", where=str(path)) from error
        raise
    finally:
        connection.close()


def _connected(path: Path, *, write: bool) -> sqlite3.Connection:
    if write:
        return sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    # A store on a read-only place cannot have the files that a reader of a write-ahead log makes. Where there is a log
    # it holds the newest records, and SQLite reads it or refuses: without it a failure would be left out.
    writable = os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)
    frozen = "" if writable or _holds_log(path) else "&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{frozen}", uri=True, timeout=WAIT_SECONDS)


def _holds_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.is_file() and log.stat().st_size > 0


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch a new file to write-ahead logging; SQLite does not wait by itself where two do so at once."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    # In this order: another process may make the file, all at once, between two of these questions.
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application != APPLICATION and not empty:
        raise RocmatrixError("RM621", what="the database was made by another program", where=str(path))
    if version > len(MIGRATIONS):
        what = f"the file has version {version}, and this program knows {len(MIGRATIONS)}"
        raise RocmatrixError("RM621", what=what, where=str(path), next="Use the newer rocmatrix that wrote it.")
    return version


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        for statements in MIGRATIONS[_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
