"""Evidence as a JSON file that a lab can send: each record has the hash of its content, and is checked when read.

The hash finds damage and careless edits. It is no signature: who sends a file vouches for it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rocmatrix.evidence.level import instant
from rocmatrix.evidence.record import LOG_BYTES, Record, once
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import opened
from rocmatrix.runtime.output.whole_file import write_whole

FORMAT = "rocmatrix-evidence"
SCHEMA = 2
READ = (1, 2)  # 1 names no places: its records stand by their times
PLACE = ("series", "number")
CLOCK_SLACK = timedelta(minutes=10)  # what is yet to come stands in front of all that this machine finds until then
EARLIEST = "2020-01-01"  # no program of this name ran before
# Far beyond what an export holds, and small enough that a file from elsewhere cannot use up memory, disk or time.
MOST_BYTES, MOST_ITEMS, MOST_SECONDS, MOST_COUNT = 256 * 2**20, 10_000, 366 * 86400, 2**53
MOST_NUMBER = 2**40  # the next record of the file gets the number after the highest one


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
    write_whole(path, written(records).encode())


def read(path: Path, *, now: datetime | None = None) -> list[Record]:
    """Return a file's records. Raises OSError; RM622 with line and field: damaged, foreign, changed, of tomorrow."""
    text = _text(path)
    try:
        data = json.loads(text, object_pairs_hook=once)
        lines = list(_lines_of(text))
    except json.JSONDecodeError as error:
        raise _refused(f"it is no JSON: {error.msg}", path, line=error.lineno) from error
    except (RecursionError, ValueError) as error:  # nested too deep; a number of thousands of digits; a key twice
        what = "a key stands twice" if "twice" in str(error) else type(error).__name__
        raise _refused(f"it is no JSON of ours: {what}", path) from error
    latest = (now or datetime.now(UTC)) + CLOCK_SLACK
    found = _rows(data, path)
    return [_record(row, path, line, latest) for row, line in zip(found, _padded(lines, len(found)), strict=True)]


def _text(path: Path) -> str:
    """Return the file's text. Raises OSError; RM622 for a pipe or a device, more than MOST_BYTES, other bytes."""
    with opened(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _refused("it is no regular file", path)
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        what = f"it is larger than {MOST_BYTES // 2**20} MiB; `--export FILE --cell NAME` writes it in parts"
        raise _refused(what, path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused("it is no text in UTF-8", path) from error


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
    """Yield the line on which each record begins, by reading the list one value after the other; `text` is JSON."""
    decoder = json.JSONDecoder()
    place, line, counted = text.find("[", text.find('"records"')) + 1, 1, 0
    while place:  # 0 where there is no list
        while text[place] in " \t\r\n,":
            place += 1
        if text[place] != "{":
            return
        line, counted = line + text.count("\n", counted, place), place
        yield line
        place = decoder.raw_decode(text, place)[1]


def _padded(lines: list[int], count: int) -> list[int | None]:
    return [*lines[:count], *[None] * (count - len(lines))]


def _record(row: Any, path: Path, line: int | None, latest: datetime) -> Record:
    if not isinstance(row, dict):
        raise _refused("a record is no object", path)  # whose line is not known
    reported = {name: value for name, value in row.items() if name != "id"}
    try:
        record = Record.model_validate_json(json.dumps(reported))
        when = instant(record.at)
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(first["msg"], path, line=line, field=".".join(map(str, first["loc"]))) from error
    except ValueError as error:
        raise _refused("it is no date", path, line=line, field="at") from error
    if row.get("id") != record.id:
        what = f"the content's hash is {record.id}, and the record is called {row.get('id')!r}: it was changed"
        raise _refused(what, path, line=line, field="id")
    if (odd := _out_of_bounds(record)) is not None:
        raise _refused("it is out of all bounds", path, line=line, field=odd)
    if when > latest:
        raise _refused(f"{record.at} is yet to come", path, line=line, field="at")
    return record


def _out_of_bounds(record: Record) -> str | None:
    """Return the first field that no run of this program can have filled like that, None where all are sane."""
    counts = (record.verdicts, record.numbers, record.marks, record.versions, *vars(record.hardware).values())
    spans = (record.seconds, *(verdict.seconds for verdict in record.verdicts))
    sane = {
        "at": record.at.isascii() and record.at >= EARLIEST,
        "log": len(record.log.encode()) <= LOG_BYTES,
        "log_omitted": 0 <= record.log_omitted < MOST_COUNT,
        "number": record.number < MOST_NUMBER,
        "seconds": all(0 <= span < MOST_SECONDS for span in spans),
        "versions": all(len(word) <= LOG_BYTES for pair in record.versions.items() for word in pair),
        "records": all(len(each) <= MOST_ITEMS for each in counts if isinstance(each, dict | tuple)),
    }
    return next((name for name, good in sane.items() if not good), None)


def _refused(what: str, path: Path, *, line: int | None = None, field: str = "") -> RocmatrixError:
    where = f"{path}, line {line}" if line else str(path)
    return RocmatrixError("RM622", what=f"{field}: {what}" if field else what, where=where)
