"""Which of two records is the newer one: by the sequence in which a file took them, not by a clock that may be set.

Within one evidence file (a series) the number decides. Records of different files are compared by time, where a
record counts as no earlier than any before it in its own file, so that a clock set back moves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmatrix.evidence.record import Record


def ordered(records: Iterable[Record]) -> list[Record]:
    """Return records, oldest first. Those that were in no file yet stand by their times alone."""
    latest: dict[str, str] = {}
    keys: list[tuple[str, int, str, Record]] = []
    for record in sorted(records, key=lambda r: (r.number, r.at)):
        at = max(record.at, latest.get(record.series, "")) if record.series else record.at
        latest[record.series] = at
        keys.append((at, record.number, "" if record.series else record.id, record))
    return [record for *_, record in sorted(keys, key=lambda key: key[:3])]
