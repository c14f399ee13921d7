"""Sizes of images as proofs recorded them: what later images are compared with, and entries for the checkout.

Only this file's own proofs are taken, and of these only what was proven in all else. The first size stays until a
person accepts another, so that images cannot grow a little each night.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.evidence import from_events, store
from rocmatrix.evidence.record import Mark, Record, ordered
from rocmatrix.verify.size import ACCEPTED, Recorded

if TYPE_CHECKING:
    from rocmatrix.containers.engine import Image
    from rocmatrix.matrix.matrix import Cell, Matrix


def recorded(path: Path, cell: Cell, image: Image) -> Recorded | None:
    """Return what an image of `cell` is compared with where the checkout has no baseline; None for the first.

    Images that are set aside are compared with those that are for the same reasons.

    Args:
        path: the evidence file.
    """
    own = [record for origin, record in store.rows(path, cell=cell.name, logs=False) if origin == store.HERE]
    return of(own, marks=from_events.marks_of(cell, labels=image.labels))


def of(records: Iterable[Record], *, marks: Sequence[Mark]) -> Recorded | None:
    """Return the size that the proofs among `records` of one cell give: the first, or the last one accepted."""
    proofs = [r for r in ordered(records) if r.kind == "prove" and r.passed and set(r.marks) == set(marks)]
    sized = [(record, size) for record in proofs if (size := _size(record))]
    accepted = [pair for pair in sized if _reason(pair[0])]
    chosen = accepted[-1:] or sized
    return next((_described(record, size) for record, size in chosen), None)


def _size(record: Record) -> int:
    found = [
        number.value
        for number in record.numbers
        if (number.probe, number.name) == (from_events.SIZE, from_events.FILES)
    ]
    return int(found[0]) if found else 0


def _reason(record: Record) -> str | None:
    summaries = (v.summary for v in record.verdicts if v.probe == from_events.SIZE)
    return next((text.removeprefix(ACCEPTED) for text in summaries if text.startswith(ACCEPTED)), None)


def _described(record: Record, size: int) -> Recorded:
    reason = _reason(record)
    of_what = f"image {record.image}, proven here" + (f"; accepted: {reason}" if reason else "")
    return Recorded(bytes=size, date=record.at[:10], of=of_what)


def entries(matrix: Matrix, records: Sequence[Record]) -> str:
    """Return entries for matrix/baselines.yaml of cells that have none there, from proofs that no mark sets aside.

    A cell that has one there gets the line to add to its `sizes`, as a comment: a larger size needs its reason.
    """
    lines: list[str] = []
    for cell in matrix.cells:
        found = of([record for record in records if record.cell == cell.name], marks=())
        known = matrix.baseline(cell.name)
        if found is not None and known is None:
            lines += [f"- cell: {cell.name}", "  sizes:", *_entry(found)]
        elif found is not None and known is not None and found.bytes != known.newest.bytes:
            lines += [f"# {cell.name} has sizes; to add below them:", *(f"# {line}" for line in _entry(found))]
    return "".join(f"{line}\n" for line in lines)


def _entry(found: Recorded) -> list[str]:
    text = json.dumps(found.of, ensure_ascii=False)
    return [f"    - bytes: {found.bytes}", f'      date: "{found.date}"', f"      of: {text}"]
