"""Ranking of several matches by how likely each is the cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import get_args

from rocmatrix.diagnosis.search.match import Match
from rocmatrix.diagnosis.signature import FAILURES, Kind, Signature
from rocmatrix.matrix.statement import Selector, within


@dataclass(frozen=True, kw_only=True)
class HostContext:
    """What is known of the machine and the cell; None is what is not known, and counts neither for nor against.

    `others` are the host's other cards: what was seen with one of them is not ruled out. `assumed`: no card
    was requested, these are this host's, and give way to those that a log of another machine names. `warned` are
    ids of doctor's checks that warn of that host, `values` what it reports of itself, by the names of comparisons.
    """

    architecture: str | None = None
    torch: str | None = None
    rocm: str | None = None
    others: tuple[str, ...] = ()
    assumed: bool = False
    warned: frozenset[str] = frozenset()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has(self, architectures: list[str]) -> bool:
        """Return whether one of `architectures` is the cell's, or that of another card here."""
        return not {self.architecture, *self.others}.isdisjoint(architectures)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """Matches that can be why a run ended, best first, and what else was seen."""

    failures: tuple[Match, ...]
    remarks: tuple[Match, ...]


def rank(matches: Iterable[Match], here: HostContext) -> Ranked:
    """Put matches in order: by what they say, then where they were seen, then how much text they matched.

    A match whose signature refines another's hides that one, and so does one that knows a family's line in detail. What
    states that others follow from it comes before all.
    """
    matches = list(matches)
    hidden = _hidden([match.signature for match in matches])
    leading = _leading([match.signature for match in matches])
    known = _by_place(match for match in matches if not match.signature.family)
    forms = _by_place(match for match in matches if not match.signature.uncaught or not match.signature.family)
    shown = [match for match in matches if match.signature.id not in hidden and not _is_known(match, known, forms)]
    failures = [match for match in shown if match.signature.is_failure or match.signature.id in leading]
    remarks = [match for match in shown if not (match.signature.is_failure or match.signature.id in leading)]
    return Ranked(
        failures=tuple(sorted(failures, key=lambda match: (match.signature.id not in leading, *_order(match, here)))),
        remarks=tuple(sorted(remarks, key=lambda match: _order(match, here))),
    )


Places = dict[tuple[int, int], set[str]]  # ids of the signatures that match there, by (order, line)


def _by_place(matches: Iterable[Match]) -> Places:
    found: Places = {}
    for match in matches:
        found.setdefault((match.order, match.line), set()).add(match.signature.id)
    return found


def _is_known(match: Match, known: Places, forms: Places) -> bool:
    """Return whether another signature knows a family's line in detail, or another family has its exception.

    One that the family itself refines is hidden by it, and knows less.

    Args:
        match: of any signature.
        known: where signatures know a line in detail.
        forms: where all signatures match but those of an exception's words alone.
    """
    signature = match.signature
    there = (forms if signature.uncaught else known).get((match.order, match.line), set())
    return signature.family and not there <= {*signature.refines}


def _leading(found: list[Signature]) -> set[str]:
    """Return the ids of what other matches follow from, as they say themselves."""
    ids = {signature.id for signature in found}
    return {signature.id for signature in found if not ids.isdisjoint(signature.leads)}


def _hidden(found: list[Signature]) -> set[str]:
    """Return the ids that a match refines; one that is itself hidden hides as well."""
    return {other for signature in found for other in signature.refines}


def _order(match: Match, here: HostContext) -> tuple[int, bool, int, int, int, int]:
    speaking = fit(match.signature, here)
    kind = 2 * get_args(Kind).index(match.signature.kind)
    if match.signature.family and match.signature.uncaught:
        # an exception's words alone come after what is known of the failure, and before what only reports that one was
        kind = max(kind, 2 * FAILURES.index("symptom") + 1)
    return kind, match.signature.family, -speaking, -match.weight, match.order, match.line


def fit(signature: Signature, here: HostContext) -> int:
    """Return how well a signature suits the machine and the cell: -1 against, 0 nothing known, more for each axis."""
    return suits(signature.when, here)


def suits(when: Selector, here: HostContext) -> int:
    """Return how well what a selector names suits the machine: -1 against, 0 nothing known, more for each axis."""
    speaking = 0
    if when.architectures is not None and here.architecture is not None:
        if not here.has(when.architectures):
            return -1
        speaking += here.architecture in when.architectures
    for version, bounds in ((here.torch, when.torch), (here.rocm, when.rocm)):
        if bounds is not None and version is not None:
            if not within(version, bounds):
                return -1
            speaking += 1
    return speaking
