"""The headline of a combination: what rules, AMD's lists, reports and our own records come to, in one word.

A rule against a combination wins; then what was run here, what AMD lists for that card, what a user
reports, and what was merely compiled in. `untested` is left for where nothing is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from rocmatrix.matrix.matrix import Architecture, Matrix, Release, Rule
from rocmatrix.matrix.rule import verdict_of
from rocmatrix.matrix.support import Support

Judgement = Literal[
    "measured", "supported", "reported", "expected", "untested", "degraded", "broken", "unavailable"
]  # fmt: skip
# An architecture (None: the CPU) and the name of a release that this project's own records show at work.
Measured = Collection[tuple[str | None, str]]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A headline and the reason for it. `cards` are those it holds for, where it does not hold for all of them."""

    verdict: Judgement
    because: str
    cards: tuple[str, ...] = ()
    others: Judgement | None = None


def judge(
    matrix: Matrix,
    *,
    architecture: str | None,
    release: Release | None,
    rules: Iterable[Rule],
    card: str | None = None,
    measured: Measured = (),
) -> Judged:
    """Return the headline of an architecture, or of one `card` of it, with a release; `rules` are all that apply.

    Without a release the versions were never built together.

    Args:
        architecture: gfx name; None for the CPU.
        rules: all rules that apply to the combination.
        card: name of one card; None for the whole architecture.
        measured: combinations that this project's records show at work.
    """
    deciding = tuple(rule for rule in rules if rule.decides)
    against = verdict_of(deciding)
    if release is None:
        return _never_built(deciding)
    if against in ("broken", "degraded"):
        rule = next(rule for rule in deciding if rule.verdict == against)
        return Judged(verdict="broken" if against == "broken" else "degraded", because=f"rule {rule.id}")
    if (architecture, release.name) in measured:
        return Judged(verdict="measured", because="this project's own records show it at work")
    if architecture is None:
        return _without_a_card(matrix, release)
    return _unopposed(matrix, architecture, release, deciding, card)


def _never_built(deciding: Iterable[Rule]) -> Judged:
    broken = next((rule for rule in deciding if rule.verdict == "broken"), None)
    why = broken.reason if broken else "no release joins these versions"
    return Judged(verdict="unavailable", because=why)


def _without_a_card(matrix: Matrix, release: Release) -> Judged:
    if release.rocm is not None:
        return Judged(verdict="untested", because="no card is named; --gpu names one")
    own = [cell for cell in matrix.cells if cell.architecture is None and cell.release == release]
    if any(cell.evidence.confidence == "measured here" for cell in own):
        return Judged(verdict="measured", because="this project's own tests run it on a CPU")
    return Judged(verdict="expected", because="the CPU build, which needs no card")


def _unopposed(
    matrix: Matrix, architecture: str, release: Release, deciding: tuple[Rule, ...], card: str | None
) -> Judged:
    """Judge a combination that no rule excludes."""
    works = [rule for rule in deciding if rule.verdict == "works"]
    if release.architectures is None:
        return Judged(verdict="untested", because=f"which cards {release.name} holds code for is not recorded")
    support = matrix.support_of(architecture, release.rocm, card=card)
    if own := [rule for rule in works if rule.evidence.confidence == "measured here"]:
        return Judged(verdict="measured", because=f"rule {own[0].id}")
    if support.official:
        return _listed(matrix.architectures[architecture], support, release, card, reported=bool(works))
    if works:
        return Judged(verdict="reported", because=f"rule {works[0].id}: {works[0].evidence.summary}")
    unlisted = f"{_unlisted(support, card)}{_listed_elsewhere(matrix, architecture, card)}"
    return Judged(verdict="expected", because=f"compiled in, and no rule excludes it; {unlisted}")


def _listed(
    architecture: Architecture, support: Support, release: Release, card: str | None, *, reported: bool
) -> Judged:
    maintained = ", in maintenance (AMD calls it deprecated)" if support.listing == "maintained" else ""
    if card is not None:
        return Judged(verdict="supported", because=f"AMD lists the {card} for ROCm {release.rocm}{maintained}")
    unlisted = set(architecture.cards) - set(architecture.chips) - set(support.cards)
    because = f"AMD lists the {', '.join(support.cards)} for ROCm {release.rocm}{maintained}"
    if not unlisted:
        return Judged(verdict="supported", because=because)
    others: Judgement = "reported" if reported else "expected"
    return Judged(verdict="supported", because=because, cards=support.cards, others=others)


def _listed_elsewhere(matrix: Matrix, architecture: str, card: str | None) -> str:
    """Return for which ROCm with device code for it AMD lists a card, or an architecture, as the end of a sentence.

    Args:
        architecture: gfx name.
        card: name of one card; None for the whole architecture.
    """
    built = dict.fromkeys(r.rocm for r in matrix.releases if r.rocm and architecture in (r.architectures or ()))
    lines = sorted((r for r in built if matrix.support_of(architecture, r, card=card).official), key=Version)
    return f"; for ROCm {' to '.join(dict.fromkeys((lines[0], lines[-1])))} it does" if lines else ""


def _unlisted(support: Support, card: str | None) -> str:
    if support.listing == "not read":
        return "AMD's list for this ROCm was not read"
    if support.cards:
        return f"AMD's list has {', '.join(support.cards)}, not the {card}"
    return "AMD lists no card of it for this ROCm"
