"""Evidence as a JSON file that a lab can send: each record with the hash of its content, and read with suspicion.

The hash finds damage and careless edits. It is no signature: who sends a file vouches for it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rocmatrix.evidence.level import instant
from rocmatrix.evidence.record import Record
from rocmatrix.runtime.errors import RocmatrixError

FORMAT = "rocmatrix-evidence"
SCHEMA = 2
READ = (1, 2)  # 1 names no places: its records stand by their times
PLACE = ("series", "number")
CLOCK_SLACK = timedelta(days=1)


def written(records: Iterable[Record]) -> str:
    """Return the file's text: one record a line, so that a mistake has a line to name."""
    lines = ",\n".join(json.dumps(_row(record), ensure_ascii=False) for record in records)
    head = f'{{"format": "{FORMAT}", "schema": {SCHEMA}, "records": ['
    return f"{head}\n{lines}\n]}}\n" if lines else f"{head}]}}\n"


def _row(record: Record) -> dict[str, Any]:
    place = {name: getattr(record, name) for name in PLACE} if record.series else {}
    return record.described() | place


def write(path: Path, records: Iterable[Record]) -> None:
    """Write the file whole or not at all. Raises OSError."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(written(records), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read(path: Path, *, now: datetime | None = None) -> list[Record]:
    """Return a file's records. Raises OSError; RM622 with line and field: damaged, foreign, changed, of tomorrow."""
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise _refused(f"it is no JSON: {error.msg}", path, line=error.lineno) from error
    except UnicodeDecodeError as error:
        raise _refused("it is no text in UTF-8", path) from error
    lines = list(_lines_of(text))
    latest = (now or datetime.now(UTC)) + CLOCK_SLACK
    found = _rows(data, path)
    return [_record(row, path, line, latest) for row, line in zip(found, _padded(lines, len(found)), strict=True)]


def _rows(data: Any, path: Path) -> list[Any]:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _refused(f'it has no "format": "{FORMAT}"', path, field="format")
    if data.get("schema") not in READ:
        known = " and ".join(map(str, READ))
        raise _refused(f"its schema is {data.get('schema')!r}, and this program reads {known}", path, field="schema")
    if unknown := sorted(data.keys() - {"format", "schema", "records"}):
        raise _refused("the field is not known", path, field=unknown[0])
    if not isinstance(data.get("records"), list):
        raise _refused("it is no list", path, field="records")
    rows: list[Any] = data["records"]
    return rows


def _lines_of(text: str) -> Iterator[int]:
    """Yield the line on which each record begins, by reading the list one value after the other."""
    decoder = json.JSONDecoder()
    place = text.find("[", text.find('"records"'))
    while 0 <= place < len(text):
        place += 1
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        if place >= len(text) or text[place] != "{":
            return
        yield text.count("\n", 0, place) + 1
        place = decoder.raw_decode(text, place)[1] - 1


def _padded(lines: list[int], count: int) -> list[int | None]:
    return [*lines[:count], *[None] * (count - len(lines))]


def _record(row: Any, path: Path, line: int | None, latest: datetime) -> Record:
    if not isinstance(row, dict):
        raise _refused("a record is no object", path, line=line)
    told = {name: value for name, value in row.items() if name != "id"}
    try:
        record = Record.model_validate_json(json.dumps(told))
        when = instant(record.at)
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(first["msg"], path, line=line, field=".".join(map(str, first["loc"]))) from error
    except ValueError as error:
        raise _refused("it is no date", path, line=line, field="at") from error
    if row.get("id") != record.id:
        what = f"the content's hash is {record.id}, and the record is called {row.get('id')!r}: it was changed"
        raise _refused(what, path, line=line, field="id")
    if when > latest:
        raise _refused(f"{record.at} is yet to come", path, line=line, field="at")
    return record


def _refused(what: str, path: Path, *, line: int | None = None, field: str = "") -> RocmatrixError:
    where = f"{path}, line {line}" if line else str(path)
    return RocmatrixError("RM622", what=f"{field}: {what}" if field else what, where=where)
