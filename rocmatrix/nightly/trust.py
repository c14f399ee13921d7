"""Images that a night may reuse, and the one it may promote, by the records of a cell."""

from __future__ import annotations

from collections.abc import Sequence

from rocmatrix.evidence.counted import required
from rocmatrix.evidence.level import OF_SIMULATION, SIMULATED, Subject, held, of_another
from rocmatrix.evidence.record import Mark, Record

# Of runs that show nothing of a cell's card, and of those against a rule that forbids the cell.
NEVER: frozenset[Mark] = frozenset(["synthetic", "nvidia", "card-errors", "forced"])


def sound(records: Sequence[Record], inputs: str, *, simulated: bool = False) -> set[str | None]:
    """Return the images of `inputs` that a build on record made, without those whose newest proof failed.

    Args:
        records: records of one cell, oldest first.
        inputs: input hash that the images have.
        simulated: whether the night is on a simulated machine; what was done on the other kind is none of its own.
    """
    own = _own(records, inputs, simulated=simulated)
    proofs = {r.image: held(r) for r in own if r.kind == "prove" and r.trouble is None}
    return {r.image for r in own if r.kind == "build" and r.passed and proofs.get(r.image, True)}


def _own(records: Sequence[Record], inputs: str, *, simulated: bool) -> list[Record]:
    return [r for r in records if r.inputs == inputs and (SIMULATED in r.marks) == simulated]


def tested(records: Sequence[Record], inputs: str, *, cell: Subject, simulated: bool = False) -> str | None:
    """Return the image that may be promoted; None for none.

    It is the one in which the newest smoke of `inputs` passed, where the newest proof and the newest whole suite
    passed in the same one: a suite of chosen probes takes that away and does not give it. A suite on the CPU, or on
    another card than the cell's, shows nothing of the cell and takes it away, too.

    Args:
        records: records of the cell, oldest first.
        inputs: input hash that the image has.
        cell: the cell that the image is of.
        simulated: whether the night is on a simulated machine.
    """
    own = _own(records, inputs, simulated=simulated)
    smokes = [record for record in own if record.kind == "smoke"]
    proofs = [record for record in own if record.kind == "prove"]
    whole = [record for record in smokes if record.whole]
    newest = [found[-1] if found else None for found in (proofs, smokes, whole)]
    images = {record.image if record and _shows(record, cell) else None for record in newest}
    return images.pop() if len(images) == 1 else None


def _shows(record: Record, cell: Subject) -> bool:
    """Return whether a run passed, and shows something of the cell's own card."""
    if not held(record) or NEVER & {*record.marks} or required.why_not(record) is not None:
        return False
    made_up = not {*OF_SIMULATION}.isdisjoint(record.marks)  # on a stand-in or another base, with the torch of that
    return record.kind != "smoke" or of_another(record, cell, simulated=made_up) is None
