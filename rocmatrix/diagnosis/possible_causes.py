"""The causes that one symptom can have, in the order of support by log, host and versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rocmatrix.diagnosis.matcher import Match, leaning
from rocmatrix.diagnosis.ranking import HostContext, suits
from rocmatrix.diagnosis.signature import Possibility


@dataclass(frozen=True, kw_only=True)
class Possible:
    """A cause with its test. `decided` where log or host show it, with `why` as text."""

    says: str
    test: str
    decided: bool
    why: str | None


def ordered(
    match: Match,
    here: HostContext,
    *,
    signs: Mapping[tuple[str, int], Match],
    failed: Collection[str] = (),
) -> tuple[Possible, ...]:
    """Return a symptom's causes: what log or host show, then what suits card and versions, then as they are listed.

    What the log only hints at comes before what has no hint.

    Args:
        match: the symptom in the log, for its causes and the values of its line.
        signs: matches in the log by (id of the signature, position of the cause).
        failed: ids of doctor's checks that failed on this host.
    """
    name, causes = match.signature.id, match.signature.causes
    rows = [
        (cause, _why(cause, signs.get((name, place)), failed), (name, leaning(place)) in signs)
        for place, cause in enumerate(causes)
    ]
    rows.sort(key=lambda row: (row[1] is None, not row[2], -suits(row[0].when, here)))
    return tuple(
        Possible(says=match.filled(cause.says), test=match.filled(cause.test), decided=why is not None, why=why)
        for cause, why, _ in rows
    )


def _why(cause: Possibility, sign: Match | None, failed: Collection[str]) -> str | None:
    """Return what shows a cause: a line of the log, or a check that failed on this host."""
    if sign is not None:
        return f"{sign.where} shows it."
    check = next((name for name in cause.host if name in failed), None)
    return f"doctor's check {check} fails on this host." if check else None
