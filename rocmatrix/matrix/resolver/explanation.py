"""The explanation of a verdict: what a request resolves to, and everything the matrix states for and against it.

Pure: today's date is a parameter, so that the same matrix explains the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rocmatrix.matrix import card_names
from rocmatrix.matrix.matrix import Cell, Matrix, Release
from rocmatrix.matrix.resolver import axes
from rocmatrix.matrix.resolver.axes import ChosenAxis
from rocmatrix.matrix.resolver.judgement import Judged, Judgement, Measured, beyond, never_paired, of_a_chip, of_subject
from rocmatrix.matrix.resolver.points import LIBRARY_TITLES, Point, Section, Subject, rules_on, sections
from rocmatrix.matrix.resolver.refusal import known_first, releases_of
from rocmatrix.matrix.resolver.request import is_open
from rocmatrix.matrix.resolver.resolve import Choice, Request, answer, resolve, with_hardware
from rocmatrix.matrix.rule import verdict_of
from rocmatrix.runtime.errors import RocmatrixError

__all__ = ["Explanation", "Point", "Section", "Subject", "explain", "rules_on", "sections"]

SCHEMA = 2
FROM_BEST: tuple[Judgement, ...] = (
    "measured", "supported", "reported", "expected", "degraded", "untested", "unavailable", "broken",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Headline and reasons. Exactly one of `choice` and `refusal` is there; `chosen` are the axes left open."""

    request: Request
    today: str
    subject: Subject
    cards: tuple[str, ...]
    judged: Judged
    choice: Choice | None
    refusal: RocmatrixError | None
    sections: tuple[Section, ...]
    chosen: tuple[ChosenAxis, ...] = ()
    python: str | None = None

    @property
    def cell(self) -> Cell | None:
        """The cell that the request resolves to, None where it is refused."""
        return self.choice.cell if self.choice else None

    @property
    def unrecorded(self) -> tuple[str, ...]:
        """The libraries of which nothing is recorded here; silence is not a verdict."""
        covered = {point.about for section in self.sections for point in section.points}
        return tuple(title for title in LIBRARY_TITLES.values() if title not in covered) if self.subject.rocm else ()

    def described(self) -> dict[str, Any]:
        """Return it for programs, with the version of this layout."""
        return {
            "schema": SCHEMA,
            "request": {axis: value for axis, value in vars(self.request).items() if value is not None},
            "today": self.today,
            "architecture": self.subject.architecture,
            "card": self.subject.card,
            "cards": list(self.cards),
            "rocm": self.subject.rocm,
            "torch": self.subject.torch,
            "release": self.subject.release.name if self.subject.release else None,
            "python": self.python,
            "verdict": self.judged.verdict,
            "because": self.judged.because,
            "holds_for": list(self.judged.cards),
            "other_cards": self.judged.others,
            "chosen": [vars(axis) for axis in self.chosen],
            "cell": _described_choice(self.choice) if self.choice else None,
            "refusal": _described_refusal(self.refusal) if self.refusal else None,
            **{section.name: [point.described() for point in section.points] for section in self.sections},
            "unrecorded": list(self.unrecorded),
        }


def explain(
    matrix: Matrix,
    request: Request,
    *,
    today: str,
    cards: tuple[str, ...] = (),
    unusable: str | None = None,
    python: str | None = None,
    measured: Measured = (),
) -> Explanation:
    """Explain a request; a refusal is part of the explanation.

    Raises RM010 for a name that the matrix does not hold, RM404 for a `python` that is no version.

    Args:
        today: date that statements expire by, such as 2026-11-21.
        cards: gfx names of the machine's cards, best first.
        unusable: what AMD card is there that serves no run, and why; None where there is none.
        python: version such as "3.12"; None for the matrix's choice.
        measured: combinations that this project's records show at work.
    """
    axes.checked_python(python)
    if request.gpu and (several := card_names.several(matrix.architectures, request.gpu)):
        requests = [replace(request, gpu=name) for name in several.names]
        each = [explain(matrix, one, today=today, python=python, measured=measured) for one in requests]
        if several.names_all or len({one.judged.verdict for one in each}) == 1:
            return _of_all(matrix, each, request, several.names)
    if request.gpu and (kind := card_names.unserved(matrix.architectures, request.gpu)):
        return _without_code(matrix, request, kind, today=today, python=python)
    typed, (request, unknown) = request, axes.recorded(matrix, request, cards)
    if unknown and request == typed:
        return _without_record(matrix, request, unknown, today=today, python=python)
    choice, refusal = answer(matrix, request, cards, unusable=unusable)
    cell = choice.cell if choice else None
    subject = _subject(matrix, request, choice, cards)
    architecture = matrix.architectures.get(subject.architecture or "")
    judged = beyond(of_subject(matrix, subject, None if unknown else python, measured), unknown)
    if listed := _listed_release(matrix, request, subject, judged, python):
        named = replace(request, rocm=listed.rocm, torch=listed.torch)
        argued = explain(matrix, named, today=today, python=python, measured=measured)
        return _for_open_versions(argued, typed, f"{subject.summary}: {judged.verdict}, {judged.because}")
    judged = of_a_chip(matrix, request, subject, judged)
    return Explanation(
        request=typed,
        today=today,
        subject=subject,
        cards=architecture.names if architecture else (),
        judged=judged,
        choice=choice,
        refusal=refusal,
        sections=tuple(sections(matrix, subject, today=today, allowed=_allowed_releases(matrix, request, subject))),
        chosen=_chosen(matrix, request, subject, cell, python, found=_found(matrix, request, cards, unusable)),
        python=python or (cell.python if cell else None),
    )


def _of_all(matrix: Matrix, each: list[Explanation], request: Request, names: tuple[str, ...]) -> Explanation:
    """Return the explanation of several cards, or of a name that several have: the headline that holds for all.

    No cell serves them all, so there is the refusal to choose next to it.
    """
    least = max(each, key=lambda one: FROM_BEST.index(one.judged.verdict))
    rest = [f"{name}: {one.judged.verdict}" for name, one in zip(names, each, strict=True) if one is not least]
    because = "; ".join([f"{least.judged.because} ({names[each.index(least)]})", *filter(None, [", ".join(rest)])])
    _, refusal = _answer_or_refusal(matrix, request)
    return replace(
        least,
        request=request,
        judged=Judged(verdict=least.judged.verdict, because=because),
        choice=None,
        refusal=refusal,
    )


def _answer_or_refusal(matrix: Matrix, request: Request) -> tuple[Choice | None, RocmatrixError | None]:
    try:
        return resolve(matrix, request), None
    except RocmatrixError as error:
        return None, error


def _without_code(matrix: Matrix, request: Request, kind: str, *, today: str, python: str | None) -> Explanation:
    """Return the explanation of an architecture, or a kind of cards, that no release was built for."""
    refusal = card_names.without_release(str(request.gpu), kind)
    subject = Subject(architecture=kind, torch=request.torch, rocm=request.rocm, release=None)
    judged = Judged(verdict="broken", because="no release holds code for it")
    return Explanation(
        request=request, today=today, subject=subject, cards=(), judged=judged, choice=None, refusal=refusal,
        sections=tuple(sections(matrix, subject, today=today)), python=python,
    )  # fmt: skip


def _without_record(
    matrix: Matrix, request: Request, unknown: tuple[str, ...], *, today: str, python: str | None
) -> Explanation:
    """Return the explanation of versions that were released and are not recorded here, for a card that is served."""
    gfx = card_names.architecture_of(matrix.architectures, str(request.gpu))
    card = _card(matrix, request, gfx)
    subject = Subject(architecture=gfx, torch=request.torch, rocm=request.rocm, release=None, card=card)
    what = f"nothing is recorded of {' and '.join(unknown)}"
    refusal = RocmatrixError("RM010", what=what, next=f"ask with another version, such as {_nearest(matrix, gfx)}")
    never = never_paired(matrix, subject)
    return Explanation(
        request=request, today=today, subject=subject, cards=matrix.architectures[gfx].names,
        judged=never or Judged(verdict="untested", because=what), choice=None, refusal=refusal,
        sections=tuple(sections(matrix, subject, today=today)), python=python,
    )  # fmt: skip


def _nearest(matrix: Matrix, gfx: str) -> str:
    """Return options that ask for the release of this matrix's choice."""
    choice, _ = answer(matrix, Request(gpu=gfx))
    release = choice.cell.release if choice else matrix.releases[-1]
    return f"--rocm {release.rocm} --torch {release.torch}"


def _listed_release(
    matrix: Matrix, request: Request, subject: Subject, judged: Judged, python: str | None
) -> Release | None:
    """Return a release that AMD's list has the card for, where the one that is taken for open versions is another.

    None where the versions were named, or the one that is taken is listed. A caution counts as it is unless a ROCm was
    named: another torch for that may have none.
    """
    left_open = request.cell is None and (is_open(request.rocm) or is_open(request.torch))
    if not left_open or subject.architecture is None or subject.card is None:
        return None
    if judged.verdict != "expected" and not (judged.verdict == "degraded" and request.rocm):
        return None
    for release in known_first(releases_of(matrix, replace(request, gpu=subject.architecture))):
        other = of_subject(matrix, _built(subject.architecture, release, subject.card), python, ())
        if other.verdict == "supported":
            return release
    return None


def _for_open_versions(argued: Explanation, request: Request, taken: str) -> Explanation:
    """Return the explanation of a listed release as that of a request that left versions open.

    Args:
        taken: what a build takes for the request, with its headline.
    """
    because = f"{argued.judged.because}; a build without these versions takes {taken}"
    open_axes = [axis for axis in ("rocm", "torch") if is_open(getattr(request, axis))]
    chosen = [
        ChosenAxis(axis=axis, value=str(getattr(argued.subject, axis)), why="AMD's list has the card for this release")
        for axis in open_axes
    ]
    judged = replace(argued.judged, because=because)
    return replace(argued, request=request, judged=judged, chosen=(*chosen, *argued.chosen))


def _chosen(
    matrix: Matrix, request: Request, subject: Subject, cell: Cell | None, python: str | None, *, found: str
) -> tuple[ChosenAxis, ...]:
    gfx, release = subject.architecture, subject.release
    taken = [*axes.chosen(matrix, request, architecture=gfx, release=release, cell=cell, found=found)]
    if cell is not None and python is None:
        taken.append(
            ChosenAxis(axis="python", value=cell.python, why="its base image brings it; --python asks for another")
        )
    elif release is not None and python is not None:
        taken.append(
            ChosenAxis(axis="python", value=python, why=axes.python_reason(matrix, release, python, cell=cell))
        )
    return tuple(taken)


def _found(matrix: Matrix, request: Request, cards: tuple[str, ...], unusable: str | None) -> str:
    return "" if request.cell else with_hardware(matrix, request, cards, unusable=unusable)[1]


def _allowed_releases(matrix: Matrix, request: Request, subject: Subject) -> tuple[Release, ...]:
    """Return the releases that a request allows, where it narrows them at all."""
    if request.rocm is None and request.torch is None:
        return ()
    kind = "cpu" if subject.rocm is None else subject.architecture
    rocm = None if subject.rocm is None else request.rocm
    return tuple(releases_of(matrix, Request(rocm=rocm, torch=request.torch, gpu=kind)))


def _subject(matrix: Matrix, request: Request, choice: Choice | None, cards: tuple[str, ...]) -> Subject:
    """Return the cell's combination, else the newest release asked for, one that no rule breaks before others."""
    named = choice.cell if choice else matrix.cell(request.cell) if request.cell else None
    if named is not None:
        return _built(named.architecture, named.release, _card(matrix, request, named.architecture))
    card = request.gpu
    request, _ = with_hardware(matrix, request, cards)
    gfx = None if request.gpu == "cpu" else request.gpu
    named_card = _card(matrix, Request(gpu=card), gfx)
    allowed = [_built(gfx, release, named_card) for release in known_first(releases_of(matrix, request))]
    sound = (subject for subject in allowed if verdict_of(rules_on(matrix, subject)) != "broken")
    never_built = Subject(architecture=gfx, torch=request.torch, rocm=request.rocm, release=None, card=named_card)
    return next(sound, allowed[0] if allowed else never_built)


def _built(architecture: str | None, release: Release, card: str | None) -> Subject:
    return Subject(architecture=architecture, torch=release.torch, rocm=release.rocm, release=release, card=card)


def _card(matrix: Matrix, request: Request, architecture: str | None) -> str | None:
    """Return the card that a request names, None where it means the architecture, or another one."""
    return card_names.card_of(matrix.architectures, request.gpu, architecture)


def _described_choice(choice: Choice) -> dict[str, Any]:
    cell = choice.cell
    return {
        "name": cell.name,
        "why": choice.why,
        "unserved": choice.unserved,
        "recommended": cell.recommended,
        "official": cell.official,
        "locked": cell.unlocked_because is None,
        "unlocked_because": cell.unlocked_because,
        "evidence": cell.evidence.model_dump(),
        "passed_over": [vars(other) for other in choice.passed_over],
    }


def _described_refusal(error: RocmatrixError) -> dict[str, Any]:
    return {"code": error.code, "what": error.what, "where": error.where, "why": error.why, "next": error.next}
