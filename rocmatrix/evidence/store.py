"""Records in and out of the SQLite file; adding one twice adds it once.

A record that this program makes gets the next number of the file's own series; one that was imported keeps its place
in the series that it comes from.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rocmatrix.evidence import schema
from rocmatrix.evidence.counted import head
from rocmatrix.evidence.record import Record, named, once, ordered
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError

HERE = "this machine"
COPY = "copy of"  # begins the series of records that a copy of this file took
MOST_CHECKED = 1000  # of all cells' records without logs, the newest: unpacking a log to hash it takes about 1 ms
_reported: set[Path] = set()


def add(path: Path, records: Iterable[Record], *, origin: str = HERE) -> int:
    """Add records in one transaction; return how many were new. Raises what opening does.

    Args:
        path: the evidence file; made where it is missing.
        records: records to add; those that are there already are skipped.
        origin: where the records were made: this machine, or the file that they are imported from.
    """
    with _writing(path) as connection:
        return insert(connection, records, origin=origin)


def insert(connection: sqlite3.Connection, records: Iterable[Record], *, origin: str = HERE) -> int:
    """Add records within a transaction that is open; return how many were new.

    Args:
        records: records to add; those that are there already are skipped.
        origin: where the records were made: this machine, or the file that they are imported from.
    """
    own = head.own(connection)
    # Files of one name may come from many places, and in any order: their records stand by their times alone.
    series = own if origin == HERE else ""
    placed = (_of_copy(record, own) if origin != HERE else record for record in ordered(records))
    return sum(_added(connection, record, origin, series) for record in placed)


def _of_copy(record: Record, own: str) -> Record:
    """Return a record that comes from elsewhere and names this file's own series with that of a copy.

    Another machine wrote it into a copy of this file: its number there states nothing of the order here.
    """
    return record.model_copy(update={"series": f"{COPY} {own}"}) if record.series == own else record


@contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    with schema.opened(path, write=True) as connection, schema.transaction(connection):
        yield connection


def _added(connection: sqlite3.Connection, record: Record, origin: str, series: str) -> int:
    body = json.dumps(record.content() | {"log": ""}, ensure_ascii=False)
    number = record.number if record.series or not series else _next(connection, series)
    row = (
        record.id, record.at, record.cell, record.kind, body, zlib.compress(record.log.encode()), origin,
        record.series or series, number,
    )  # fmt: skip
    added = connection.execute("INSERT OR IGNORE INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row).rowcount
    if added and origin == HERE and row[-2] == head.own(connection):
        connection.execute("UPDATE head SET number = max(number, ?)", (number,))
    return added


def _next(connection: sqlite3.Connection, series: str) -> int:
    """Return the next number of the file's own series; one that was given once is not given again."""
    (last,) = connection.execute("SELECT max(number) FROM record WHERE series = ?", (series,)).fetchone()
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    return max(int(last or 0), head.in_file(connection, path)) + 1


def save(path: Path, record: Record) -> bool:
    """Add a record of a job that has ended; where that cannot be, say so once under RM620 and go on.

    The job's own outcome is never touched by a store that is full, read-only, locked or not ours.
    """
    try:
        add(path, [record])
    except (sqlite3.Error, OSError, RocmatrixError) as error:
        report_unsaved(path, record, error)
        return False
    return True


def report_unsaved(path: Path, record: Record, error: Exception) -> None:
    """Report once under RM620 that records cannot be written.

    Args:
        path: the evidence file.
        error: what kept the record from being written.
    """
    if path not in _reported:
        _reported.add(path)
        why = error.what if isinstance(error, RocmatrixError) else str(error)
        reported = RocmatrixError("RM620", what=f"the {record.kind} of {record.cell}", where=str(path), why=why)
        say(reported.render())


def read(path: Path, *, cell: str | None = None, logs: bool = True) -> list[Record]:
    """Return the records, of one cell or all, oldest first; none where there is no file.

    `logs` may be left out, which reads faster: their hash then differs. Raises RM621 for what is no record, and for one
    whose content has another hash than its name; of all cells without logs, MOST_CHECKED are compared.

    Args:
        path: the evidence file.
        cell: name of a cell; None for all.
        logs: read the logs, too.
    """
    return [record for _, record in rows(path, cell=cell, logs=logs)]


def rows(path: Path, *, cell: str | None = None, logs: bool = True) -> list[tuple[str, Record]]:
    """Return (origin, record), oldest first; none where there is no file. Raises RM621 for what is no evidence.

    Args:
        path: the evidence file.
        cell: name of a cell; None for all.
        logs: read the logs, too.
    """
    if not schema.is_there(path):
        return []
    with schema.opened(path, write=False) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        found = _selected(connection, version, cell) if version else []
        forks = _forks(connection) if version >= schema.NUMBERED else {}
        unchecked = 0 if logs or cell else max(0, len(found) - MOST_CHECKED)
        pairs = [_record(row, path, logs=logs, check=place >= unchecked) for place, row in enumerate(found)]
        pairs = [(origin, _placed(record, forks)) for origin, record in pairs]
    origins = {id(record): origin for origin, record in pairs}
    return [(origins[id(record)], record) for record in ordered(record for _, record in pairs)]


def _forks(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the first number that two records share, of each series: of any cells, of which some may be asked for."""
    shared = "SELECT series, number FROM record WHERE series != '' GROUP BY series, number HAVING count(*) > 1"
    return dict(connection.execute(f"SELECT series, min(number) FROM ({shared}) GROUP BY series").fetchall())


def _placed(record: Record, forks: Mapping[str, int]) -> Record:
    """Return a record without its place where that states nothing: after a fork, and where a copy took it.

    Copies of this file may be several machines', so that their numbers are of several sequences.

    Args:
        forks: first number of each series that two records share.
    """
    number = forks.get(record.series)
    if record.series.startswith(COPY) or (number is not None and record.number >= number):
        return record.model_copy(update={"series": "", "number": 0})
    return record


def missing(path: Path) -> int:
    """Return how many records of this file's own sequence are gone, the newest among them.

    Nothing here removes one: a gap is an edit by hand. Of a file that is gone or was emptied the one next to it still
    names the last number. Raises what opening does.
    """
    if not schema.is_there(path) or path.stat().st_size == 0:
        return head.last(path)
    with schema.opened(path, write=False) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] < schema.NUMBERED:
            return 0
        own = "FROM record WHERE series = (SELECT name FROM series) AND origin = ?"
        last, count = connection.execute(f"SELECT coalesce(max(number), 0), count(*) {own}", (HERE,)).fetchone()
        return max(int(last), head.in_file(connection, path)) - int(count)


def _selected(connection: sqlite3.Connection, version: int, cell: str | None) -> list[tuple[Any, ...]]:
    where, values = ("WHERE cell = ?", (cell,)) if cell else ("", ())
    place = "series, number" if version >= schema.NUMBERED else "'', 0"  # a file that an older program wrote
    columns = f"id, cell, body, log, origin, {place}"
    return connection.execute(f"SELECT {columns} FROM record {where} ORDER BY at, id", values).fetchall()


def _record(row: Sequence[Any], path: Path, *, logs: bool, check: bool) -> tuple[str, Record]:
    """Return origin and record of a row, with or without its log.

    Args:
        row: name, cell, body, packed log, origin, series and number.
        path: the evidence file.
        logs: unpack the log, too.
        check: compare the content with the name, which is its hash.
    """
    name, cell, body, packed, origin, series, number = row
    try:
        data = json.loads(body, object_pairs_hook=once)
        log = zlib.decompress(packed).decode() if logs or check else ""
        intact = not check or (named(data | {"log": log}) == name and data["cell"] == cell)
        made = Record.model_validate_json(json.dumps(data | {"log": log if logs else ""}))
    except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
        raise RocmatrixError("RM621", what=f"a record cannot be read: {error}", where=str(path)) from error
    if not intact:
        what = f"record {name[:12]} of {cell} was changed after it was written: its content has another hash"
        raise RocmatrixError("RM621", what=what, where=str(path))
    return origin, made.model_copy(update={"series": series, "number": number})
