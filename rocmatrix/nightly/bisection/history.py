"""Recorded results of a probe, version by version, on one architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from rocmatrix.evidence.level import NOT_APPLICABLE_STATUSES, PASSED, card_of, why_not
from rocmatrix.evidence.record import Record, ordered
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.nightly.bisection.search import Answer


@dataclass(frozen=True, kw_only=True)
class Step:
    """One version on the way: its cell, whether that is one of the matrix, and what is on record of it."""

    cell: Cell
    of_matrix: bool
    answer: Answer | None = None
    at: str | None = None

    @property
    def summary(self) -> str:
        """The step in one line."""
        made = "" if self.of_matrix else " (no cell of the matrix: made for this)"
        return f"{self.cell.name}: {self.answer or 'not on record'}{f' since {self.at}' if self.at else ''}{made}"


def versions(matrix: Matrix, architecture: str | None) -> list[tuple[Cell, bool]]:
    """Return every version for an architecture that can be built from checked wheels, oldest first.

    Where no cell of a release is written, it is derived, broken or not.
    """
    own = {cell.release.name: cell for cell in matrix.cells if cell.architecture == architecture}
    found: list[tuple[Cell, bool]] = []
    for release in matrix.releases:
        cell = own.get(release.name)
        made = cell or (matrix.derived(architecture, release) if architecture and release.rocm else None)
        if made is not None and made.unlocked_because is None:
            found.append((made, cell is not None))
    return sorted(found, key=lambda row: _age(row[0]))


def _age(cell: Cell) -> tuple[Version, Version]:
    return Version(cell.release.rocm or "0"), Version(cell.release.torch)


def steps(
    ordered: Sequence[tuple[Cell, bool]], records: Iterable[Record], probe: str, *, card: str | None = None
) -> list[Step]:
    """Return the versions with what is on record: the newest verdict of `probe` that counts for its cell.

    Args:
        ordered: (cell, whether the matrix holds it), oldest version first.
        records: all records, in any order.
        probe: name of the probe.
        card: name of the card whose records count; None for any.
    """
    records = list(records)
    return [_step(cell, known, records, probe, card) for cell, known in ordered]


def _step(cell: Cell, of_matrix: bool, records: Sequence[Record], probe: str, card: str | None) -> Step:
    outcomes = [
        (record.at, verdict.status)
        for record in ordered(records)
        if record.kind == "smoke"
        and why_not(record, cell) is None
        and card_of(record, cell) in (None, card or card_of(record, cell))
        for verdict in record.verdicts
        if verdict.probe == probe and verdict.status not in NOT_APPLICABLE_STATUSES
    ]
    if not outcomes:
        return Step(cell=cell, of_matrix=of_matrix)
    at, status = outcomes[-1]
    return Step(cell=cell, of_matrix=of_matrix, answer="good" if status in PASSED else "bad", at=at)
