"""The parts of a bundle: plain data and ends of logs, cleaned, each within a number of bytes of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocmatrix.evidence.bundle.clean import clean, clean_data, without_own_words
from rocmatrix.evidence.bundle.identity import Identity
from rocmatrix.evidence.record import LOG_BYTES, Record

MOST_BYTES = 2_000_000  # of all parts together, not packed
DATA_BYTES, RECORD_BYTES, TAIL_BYTES = 200_000, 60_000, 48_000
MOST_LOGS, MOST_RECORDS = 8, 12
LONGEST_TEXT, LONGEST_LIST = 2_000, 300  # of one value, before its part is measured
_READ_BYTES = 4 * TAIL_BYTES
BEGINNING = "[the beginning is left out]"
KINDS = ("smoke", "bench", "train", "prove", "build")  # the most useful first


@dataclass(frozen=True, kw_only=True)
class Part:
    """One file of a bundle."""

    name: str
    text: str

    @property
    def size(self) -> int:
        """Its bytes, not packed."""
        return len(self.text.encode())


def data(name: str, value: Any, identity: Identity, *, most: int = DATA_BYTES) -> Part:
    """Return plain data as a part; where it is larger than `most` bytes, a note stands in its place.

    Args:
        name: file name within the bundle.
        value: plain data: dictionaries, lists, text, numbers.
        most: bytes that the part may have.
    """
    text = _json(_shortened(clean_data(value, identity), identity))
    size = len(text.encode())
    if size > most:
        text = _json(_own({"left_out": f"{size} bytes, more than {most}"}, identity))
    return Part(name=without_own_words(name, identity), text=text)


def _own(value: dict[str, str], identity: Identity) -> dict[str, str]:
    """Return words of this program without names of this machine: a host may be called `doctor`.

    The rest of a part is cleaned once, as it is gathered: what is missed there has to be found by the second look.
    """
    return {without_own_words(key, identity): without_own_words(text, identity) for key, text in value.items()}


def record(each: Record, identity: Identity, *, number: int) -> Part:
    """Return one record with the end of its log. It is redacted, so its hash no longer fits: it cannot be imported.

    Args:
        number: place in the bundle, the first is 1.
    """
    log = _tail(each.log, identity, cut=each.log_omitted > 0 or len(each.log.encode()) >= LOG_BYTES)
    fields = {name: value for name, value in each.content().items() if name != "log"}
    fields = _shortened(clean_data(fields, identity), identity)
    name = clean(f"records/{number:02d}-{each.kind}-{each.cell}.json", identity)
    if (size := len(_json(fields).encode())) > RECORD_BYTES + TAIL_BYTES:
        fields = _own({"left_out": f"its fields: {size} bytes, more than {RECORD_BYTES + TAIL_BYTES}"}, identity)
    return Part(name=name, text=_with_log(fields, log.splitlines(), identity))


def _with_log(fields: dict[str, Any], lines: list[str], identity: Identity) -> str:
    """Return a record's text with the end of its log: as JSON, many short lines have several times their bytes."""
    key, beginning = without_own_words("log_end", identity), without_own_words(BEGINNING, identity)
    text = _json(fields | {key: lines})
    while len(text.encode()) > RECORD_BYTES + 2 * TAIL_BYTES and lines:
        lines = lines[(len(lines) + 1) // 2 :]
        text = _json(fields | {key: [beginning, *lines]})
    return text


def log(path: Path, identity: Identity) -> Part:
    """Return the end of a log, cleaned before it is cut, so that no secret is cut out of its form. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _READ_BYTES))
        text = file.read(_READ_BYTES).decode(errors="replace")
    return Part(name=clean(f"logs/{path.name}", identity), text=_tail(text, identity, cut=size > _READ_BYTES))


def newest(records: Iterable[Record]) -> list[Record]:
    """Return of each cell and kind the newest record, and the newest that did not pass; the latest cells first.

    Args:
        records: records, oldest first.
    """
    held: dict[tuple[str, str, bool], Record] = {}
    latest: dict[str, int] = {}
    for place, each in enumerate(records):
        latest[each.cell] = place
        held[(each.cell, each.kind, True)] = each
        if not each.passed:
            held[(each.cell, each.kind, False)] = each
    order = sorted(held, key=lambda key: (-latest[key[0]], not key[2], KINDS.index(key[1])))
    found = list({held[key].id: held[key] for key in order}.values())
    return found[:MOST_RECORDS]


def logs(folder: Path, *, cell: str = "") -> list[Path]:
    """Return the newest logs of a folder, of one cell or all; a traceback belongs to every cell.

    Args:
        folder: folder of all logs; it need not exist.
        cell: name of a cell; empty for all.
    """
    found = [path for path in folder.glob("*.log") if path.is_file() and not path.is_symlink()]
    selected = [path for path in found if not cell or cell in path.name or path.name.startswith("traceback-")]
    return sorted(selected, key=lambda path: (-path.stat().st_mtime_ns, path.name))[:MOST_LOGS]


def _tail(text: str, identity: Identity, *, cut: bool) -> str:
    """Return the last TAIL_BYTES of a text, from the start of a line on.

    Args:
        cut: whether the text begins in the middle of a line, which is then left out: half a token has no form.
    """
    whole = text.partition("\n")[2] if cut else text
    cleaned = clean(whole, identity)
    kept = cleaned.encode()[-TAIL_BYTES:].decode(errors="ignore")
    if len(kept) < len(cleaned):
        kept = kept.partition("\n")[2]
    beginning = without_own_words(BEGINNING, identity)
    return f"{beginning}\n{kept}" if cut or len(kept) < len(cleaned) else kept


def _shortened(value: Any, identity: Identity) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    if isinstance(value, dict):
        kept = {key: _shortened(each, identity) for key, each in list(value.items())[:LONGEST_LIST]}
        return kept | _cut(len(value), identity)
    if isinstance(value, list):
        kept_last = [_shortened(each, identity) for each in value[-LONGEST_LIST:]]  # the end of a list has the failure
        return [*_cut(len(value), identity).values(), *kept_last]
    return value


def _cut(count: int, identity: Identity) -> dict[str, str]:
    left_out = {"left_out": f"[{count - LONGEST_LIST} of {count} are left out]"}
    return _own(left_out, identity) if count > LONGEST_LIST else {}


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
