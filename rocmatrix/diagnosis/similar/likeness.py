"""Which known failures are worth naming for a log, and whether they support what a signature states."""

from __future__ import annotations

from collections.abc import Sequence

from rocmatrix.diagnosis.similar.cases import Similar, known

COUNT = 2
LEAST = 12.0  # score: about two rare terms
NEAREST = 5  # of threads never learned from, 26 of 30 stated causes that one of so many had were right, 5 of 14 others
PASTED = 12  # lines: who shows so few takes them for the failure; long logs of runs that went well have warnings


def alike(text: str, matched: Sequence[str], *, failed: bool, lines: int, stated: str = "") -> tuple[Similar, ...]:
    """Return the known failures nearest to a log; none where they share too little.

    Args:
        text: the lines to compare.
        matched: ids of the signatures that match them.
        failed: whether a signature found a failure; without one, only a few lines are compared.
        lines: of the whole log.
        stated: the cause that is stated first: what is like it would be no other one.
    """
    if not failed and lines > PASTED:
        return ()
    return known().nearest(text, matched, COUNT, stated=stated, least=LEAST)


def supported(text: str, name: str, sample: str) -> bool:
    """Return whether one of the known failures nearest to a log is answered by a signature, too.

    Args:
        text: the lines to compare.
        name: id of the signature that answers the log.
        sample: the lines that it was written for, which count as a known failure.
    """
    return known().has_near(text, name, sample, NEAREST)
