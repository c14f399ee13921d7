"""Diagnosis of a growing log: a new diagnosis whenever the likely cause changes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.comparisons.forms import NONE, Comparisons
from rocmatrix.diagnosis.diagnosis import Diagnosis
from rocmatrix.diagnosis.intake.follow import Follower
from rocmatrix.diagnosis.machine import compared_values
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.matcher import Scanner
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.diagnosis.search.match import Scanned
from rocmatrix.diagnosis.signature import Signature
from rocmatrix.matrix.matrix import Matrix

IDLE_LOOKS = 2  # a last line without its end is read after so many looks that found nothing new


def diagnoses(
    follower: Follower,
    *,
    signatures: Iterable[Signature],
    here: HostContext,
    matrix: Matrix | None,
    failed_checks: frozenset[str],
    pause: Callable[[], bool],
    comparisons: Comparisons = NONE,
) -> Iterator[Diagnosis]:
    """Yield a diagnosis whenever the first answer changes, until `pause` returns False.

    Line numbers are those of the file that is there: they begin anew after a rotation, and what was found stays.

    Args:
        signatures: signatures to match, the project's own errors included.
        failed_checks: ids of doctor's checks (D101, ...) that failed on this host.
        pause: waits for the next look, and returns whether there is to be one.
        comparisons: rules that relate two values of the log, or of the host that `here` describes.
    """
    scanner, values, state = Scanner(signatures), Values(comparisons), Scanned()
    first: str | None = None
    idle, restarts = 0, 0
    going = True
    while going:
        block = follower.read()
        if follower.restarts > restarts:
            restarts, state.lines, state.kept = follower.restarts, 0, b""
        idle = 0 if block else idle + 1
        if block:
            _take(scanner, values, block, state)
        going = bool(block) or pause()
        if block or idle == IDLE_LOOKS or not going:
            partial = follower.partial if not block else b""
            seen = _with_partial(scanner, values, partial, state)
            seen = seen.known() if block or partial else seen.ended()
            found = diagnosis.concluded(
                seen, name=str(follower.path), here=values.completed(here), matrix=matrix,
                failed_checks=diagnosis.checks_of(values, here, failed_checks),
                compared=compared_values.of(values, here, matrix.architectures if matrix else {}),
            )  # fmt: skip
            if found.best and found.best.signature.id != first:
                first = found.best.signature.id
                yield found


def _take(scanner: Scanner, values: Values, block: bytes, state: Scanned) -> None:
    for chunk in values.watched([block]):
        scanner.read(chunk, state)


def _with_partial(scanner: Scanner, values: Values, partial: bytes, state: Scanned) -> Scanned:
    """Return what was found, with that of a last line that has no end yet; the line itself is read again later."""
    if not partial:
        return state
    seen = Scanned(
        matches={name: copy.copy(match) for name, match in state.matches.items()},
        signs=dict(state.signs),
        lines=state.lines,
        bytes=state.bytes,
        kept=state.kept,
    )
    _take(scanner, values, partial, seen)
    return seen
