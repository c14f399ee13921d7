"""Verdict on a combination in one word, from rules, AMD's lists, reports and our own records.

A rule against a combination wins; then what was run here, what AMD lists for that card, what a user
reports, and what was merely compiled in. `untested` is left for where nothing is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from packaging.version import Version

from rocmatrix.matrix.matrix import Architecture, Matrix, Release, Rule
from rocmatrix.matrix.naming import versions
from rocmatrix.matrix.resolver import axes
from rocmatrix.matrix.resolver.points import Subject, rules_on
from rocmatrix.matrix.resolver.request import Request, agrees
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


def beyond(judged: Judged, unknown: tuple[str, ...]) -> Judged:
    """Return a headline whose reason names the versions that no release here has."""
    if not unknown:
        return judged
    named = " and ".join(unknown)
    every = ", as in every release" if judged.verdict == "broken" else ""
    return replace(judged, because=f"{judged.because}{every}; nothing is recorded of {named}")


def of_subject(matrix: Matrix, subject: Subject, python: str | None, measured: Measured) -> Judged:
    """Return the headline of a combination for a Python; its wheels may be built for others alone.

    Args:
        python: version such as "3.12"; None for any.
        measured: combinations that this project's records show at work.
    """
    release = subject.release
    if release is not None and python is not None and release.pythons and not axes.built_for(release, python):
        return Judged(verdict="unavailable", because=axes.python_reason(matrix, release, python, cell=None))
    rules = rules_on(matrix, subject)
    gfx, card = subject.architecture, subject.card
    return judge(matrix, architecture=gfx, release=release, rules=rules, card=card, measured=measured)


def of_a_chip(matrix: Matrix, request: Request, subject: Subject, judged: Judged) -> Judged:
    """Return the headline of integrated graphics by name: AMD lists processors, and has to list most that have them."""
    gfx = subject.architecture
    named = request.gpu not in (None, "auto", *matrix.architectures) and subject.card is None and not request.cell
    if gfx is None or judged.others is None or not (named and matrix.architectures[gfx].integrated):
        return judged
    lines = dict.fromkeys(release.rocm for release in matrix.releases if release.rocm)
    listed = {card for line in lines for card in matrix.support_of(gfx, line).cards}
    processors = set(matrix.architectures[gfx].names) - set(matrix.architectures[gfx].chips)
    if 2 * len(processors & listed) >= len(processors):
        return judged
    because = f"compiled in, and no rule excludes it; of its processors {judged.because}"
    return replace(judged, verdict=judged.others, because=because)


def never_paired(matrix: Matrix, subject: Subject) -> Judged | None:
    """Return the headline of a torch whose builds are all known with a ROCm before all recorded; None where open.

    TheRock's previews were built with torches of their own, which the releases here do not name.
    """
    recorded = [release.rocm for release in matrix.releases if release.rocm]
    if subject.torch is None or subject.rocm is None or not versions.precedes(subject.rocm, recorded):
        return None
    whole = next((r.torch for r in matrix.releases if agrees(subject.torch, r.torch)), None)
    if whole is None:
        return None
    broken = (r for r in rules_on(matrix, replace(subject, torch=whole)) if r.verdict == "broken" and r.decides)
    of_the_pair = (r for r in broken if r.when.torch and r.when.rocm and r.when.architectures is None)
    return next((Judged(verdict="unavailable", because=rule.reason) for rule in of_the_pair), None)
