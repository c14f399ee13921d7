"""Size of an image against the one recorded for its cell: a relative limit, never an absolute one.

The checkout's baseline comes first. Where a cell has none, the first image of it that was proven here gives one: its
size is recorded with the proof, and later images are compared with that until the checkout has a baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.matrix.kernel_library import LIMIT, Baseline
from rocmatrix.verify.finding import Check, Finding

NAME = "size"
ACCEPTED = "accepted: "  # how the summary of a size begins that a person took, with the reason


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Recorded size: `bytes` of all files, `date`, and `of` what they were measured."""

    bytes: int
    date: str
    of: str
    limit: float = LIMIT

    @property
    def most(self) -> int:
        """The bytes that an image may take."""
        return int(self.bytes * self.limit)


def check(
    size: int, baseline: Baseline | None, *, cell: str, today: str, recorded: Recorded | None = None, accept: str = ""
) -> Check:
    """Compare `size`, the bytes of all files, with the checkout's baseline, else with what is on record here.

    With neither, nothing is compared, which is said; the proof keeps the size. `accept` is a person's reason to take
    a size whatever it is: it becomes what later images are compared with.

    Args:
        size: bytes of all files.
        cell: the cell\'s whole name, such as rocm7.2-torch2.12.1-gfx1100.
        today: date of the record, such as 2026-11-21.
        accept: a person's reason to take the size as it is; empty to compare it.
    """
    data, notes = {"bytes": size}, (_entry(cell, size, today),)
    if size <= 0:
        empty = Finding(code="RM218", what="the image holds no byte")
        return Check(name=NAME, summary="no byte", findings=(empty,), data=data)
    if accept:
        return Check(name=NAME, summary=f"{ACCEPTED}{accept}: {size} bytes", data=data, notes=notes)
    known = _of(baseline) or recorded
    if known is None:
        summary = f"{size} bytes: the first size on record of this cell; later images are compared with it"
        return Check(name=NAME, summary=summary, skipped=True, data=data, notes=notes)
    data["baseline"] = known.bytes
    summary = f"{size} bytes, {size / known.bytes:.3f} of the {known.bytes} of {known.date} ({known.of})"
    if size <= known.most:
        return Check(name=NAME, summary=summary, data=data)
    what = f"{size} bytes are more than {known.limit:g} times the {known.bytes} recorded on {known.date}"
    return Check(name=NAME, summary=summary, findings=(Finding(code="RM218", what=what),), data=data)


def _of(baseline: Baseline | None) -> Recorded | None:
    if baseline is None:
        return None
    newest = baseline.newest
    return Recorded(bytes=newest.bytes, date=newest.date, of=newest.of, limit=baseline.limit)


def _entry(cell: str, size: int, today: str) -> str:
    return f"{size} bytes of {cell} are on record since {today}; `./invokew evidence --sizes` writes a baseline of it"
