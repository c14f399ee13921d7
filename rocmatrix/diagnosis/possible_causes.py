"""The causes that one symptom can have, in the order of support by log, host and versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rocmatrix.diagnosis.comparisons.compare import Compared
from rocmatrix.diagnosis.machine.card_support import CardSupport
from rocmatrix.diagnosis.matcher import leaning
from rocmatrix.diagnosis.ranking import HostContext, suits
from rocmatrix.diagnosis.search.match import Match
from rocmatrix.diagnosis.signature import Possibility


@dataclass(frozen=True, kw_only=True)
class Possible:
    """A cause with its test. `decided` where log or host show it; `why` is what shows it, or makes it more likely.

    `hinted` is whether log or host at least point at it.
    """

    says: str
    test: str
    decided: bool
    why: str | None
    hinted: bool = False


def ordered(
    match: Match,
    here: HostContext,
    *,
    signs: Mapping[tuple[str, int], Match],
    failed: Collection[str] = (),
    card: CardSupport | None = None,
    compared: Mapping[str, Compared] = MappingProxyType({}),
) -> tuple[Possible, ...]:
    """Return a symptom's causes: what log or host show, then what suits card and versions, then as they are listed.

    What the log or the host only hints at comes before what has no hint; that a card is not supported
    comes last where AMD's list holds it.

    Args:
        match: the symptom in the log, for its causes and the values of its line.
        signs: matches in the log by (id of the signature, position of the cause).
        failed: ids of doctor's checks that failed on this host.
        card: what AMD's lists say of the card with its ROCm release.
        compared: rules on two values that hold, by id.
    """
    name, causes = match.signature.id, match.signature.causes
    rows = []
    for place, cause in enumerate(causes):
        shown, hinted = _why(cause, signs.get((name, place)), failed, compared), (name, leaning(place)) in signs
        leans = _leans(cause, here, card, compared)
        against = not hinted and cause.unlisted and card is not None and card.is_listed
        rank = (shown is None, against, not (hinted or leans), leans is None, -suits(cause.when, here))
        rows.append((rank, cause, shown, leans, bool(shown or hinted or leans)))
    rows.sort(key=lambda row: row[0])
    return tuple(
        Possible(
            says=match.filled(cause.says),
            test=match.filled(cause.test),
            decided=bool(shown),
            why=shown or leans,
            hinted=hinted,
        )
        for _, cause, shown, leans, hinted in rows
    )


def _why(
    cause: Possibility, sign: Match | None, failed: Collection[str], compared: Mapping[str, Compared]
) -> str | None:
    """Return what shows a cause: a line of the log, two values, or a check that failed on this host."""
    if sign is not None:
        return f"{sign.where} shows it."
    proof = next((compared[name] for name in cause.compared if name in compared and compared[name].is_certain), None)
    if proof is not None:
        return proof.why
    check = next((name for name in cause.host if name in failed), None)
    return f"doctor's check {check} fails on this host." if check else None


def _leans(
    cause: Possibility, here: HostContext, card: CardSupport | None, compared: Mapping[str, Compared]
) -> str | None:
    """Return what of the host, or of two values, makes a cause more likely and does not show it."""
    found = next((compared[name] for name in cause.compared if name in compared), None)
    if found is not None:
        return found.why
    if cause.unlisted and card is not None and not card.is_listed:
        return card.why
    check = next((name for name in cause.host if name in here.warned), None)
    return f"doctor's check {check} warns of this host." if check else None
