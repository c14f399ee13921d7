"""Whether AMD's lists hold the card of a log with the ROCm release that it names: read as values, weighed as a hint."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.matrix.matrix import Matrix


@dataclass(frozen=True, kw_only=True)
class CardSupport:
    """`is_listed`: AMD's list for that release holds a card of this architecture; `why` is what was compared."""

    is_listed: bool
    why: str


def of(matrix: Matrix | None, here: HostContext) -> CardSupport | None:
    """Return what the lists say of the card and release at hand; None where one is not known, or no list was read.

    A card that is not listed often works all the same, so this never decides.
    """
    if matrix is None or here.architecture is None or here.rocm is None:
        return None
    for line in (here.rocm, ".".join(here.rocm.split(".")[:2])):
        found = matrix.support_of(here.architecture, line)
        if found.listing != "not read":
            held = "holds cards" if found.official else "holds no card"
            return CardSupport(
                is_listed=found.official, why=f"AMD's list for ROCm {line} {held} of {here.architecture}."
            )
    return None
