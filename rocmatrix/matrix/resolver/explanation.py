"""The argument for a verdict: what a request resolves to, and everything the matrix says for and against it.

Pure: today's date is a parameter, so that the same matrix argues the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rocmatrix.matrix import derived_rules as derive
from rocmatrix.matrix.matrix import Architecture, Cell, Matrix, Release
from rocmatrix.matrix.resolver.refusal import releases_of
from rocmatrix.matrix.resolver.resolve import Choice, Request, resolve, with_hardware
from rocmatrix.matrix.rule import Claim, Rule, verdict_of
from rocmatrix.matrix.statement import Evidence, Selector, Verdict
from rocmatrix.runtime.errors import RocmatrixError

SCHEMA = 1
LIBRARY_TITLES = {
    "rocblas": "rocBLAS",
    "rccl": "RCCL",
    "hipblaslt": "hipBLASLt",
    "attention": "attention",
    "allocator": "allocator",
    "drivers": "driver",
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """One statement with its evidence. `given` is the circumstance in which alone a caution holds."""

    about: str
    says: str
    evidence: Evidence
    expires: str
    expired: bool
    verdict: Verdict | None = None
    given: str | None = None
    claim: Claim | None = None

    def described(self) -> dict[str, Any]:
        """Return it for programs; what does not apply is left out."""
        optional = {"verdict": self.verdict, "given": self.given, "claim": self.claim and self.claim.model_dump()}
        return {
            "about": self.about,
            "says": self.says,
            **{key: value for key, value in optional.items() if value is not None},
            **self.evidence.model_dump(),
            "expires": self.expires,
            "expired": self.expired,
        }


@dataclass(frozen=True, kw_only=True)
class Section:
    """Points of one kind under the title that a person reads; `name` is for programs."""

    name: str
    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The combination argued about. Without a `release` these versions were never built together."""

    architecture: str | None
    torch: str | None
    rocm: str | None
    release: Release | None

    @property
    def words(self) -> str:
        """The combination as a person would say it."""
        rocm = f"ROCm {self.rocm}" if self.rocm else "no ROCm"
        return f"{self.architecture or 'no card'}, {rocm}, torch {self.torch or 'of any version'}"


@dataclass(frozen=True, kw_only=True)
class Argument:
    """Verdict and reasons. Exactly one of `choice` and `refusal` is there."""

    request: Request
    today: str
    subject: Subject
    cards: tuple[str, ...]
    verdict: Verdict
    choice: Choice | None
    refusal: RocmatrixError | None
    sections: tuple[Section, ...]

    @property
    def cell(self) -> Cell | None:
        """The cell that the request resolves to, None where it is refused."""
        return self.choice.cell if self.choice else None

    @property
    def unrecorded(self) -> tuple[str, ...]:
        """The libraries of which nothing is recorded here; silence is not a verdict."""
        spoken = {point.about for section in self.sections for point in section.points}
        return tuple(title for title in LIBRARY_TITLES.values() if title not in spoken) if self.subject.rocm else ()

    def described(self) -> dict[str, Any]:
        """Return it for programs, with the version of this layout."""
        return {
            "schema": SCHEMA,
            "request": {axis: value for axis, value in vars(self.request).items() if value is not None},
            "today": self.today,
            "architecture": self.subject.architecture,
            "cards": list(self.cards),
            "rocm": self.subject.rocm,
            "torch": self.subject.torch,
            "release": self.subject.release.name if self.subject.release else None,
            "verdict": self.verdict,
            "cell": _described_choice(self.choice) if self.choice else None,
            "refusal": _described_refusal(self.refusal) if self.refusal else None,
            **{section.name: [point.described() for point in section.points] for section in self.sections},
            "unrecorded": list(self.unrecorded),
        }


def argue(matrix: Matrix, request: Request, *, today: str, cards: tuple[str, ...] = ()) -> Argument:
    """Argue a request. `today` is a date such as 2026-11-21; `cards` are those of the machine, best first.

    A refusal is part of the argument. Raises RM010 for a name that the matrix does not hold.
    """
    choice, refusal = _answer(matrix, request, cards)
    subject = _subject(matrix, request, choice, cards)
    architecture = matrix.architectures.get(subject.architecture or "")
    return Argument(
        request=request,
        today=today,
        subject=subject,
        cards=architecture.names if architecture else (),
        verdict=verdict_of(rules_on(matrix, subject)),
        choice=choice,
        refusal=refusal,
        sections=tuple(sections(matrix, subject, today=today)),
    )


def sections(matrix: Matrix, subject: Subject, *, today: str) -> Iterator[Section]:
    """Yield all that is known of a combination: rules, cautions, support, overrides, libraries. None is left out."""
    rules = rules_on(matrix, subject)
    cautions = [rule for rule in rules if not rule.decides]
    architecture = matrix.architectures.get(subject.architecture or "")
    found = (
        ("rules", "What judges it", [_rule(rule, today) for rule in rules if rule.decides]),
        ("cautions", "What to beware of", [_rule(rule, today) for rule in cautions if rule.when.architectures]),
        ("support", "Who builds and supports it", _support(architecture, subject, today)),
        ("overrides", "HSA_OVERRIDE_GFX_VERSION", _overrides(architecture, subject, today)),
        ("libraries", "Libraries and drivers", _libraries(matrix, subject, today)),
        ("general", "True of every card", [_rule(rule, today) for rule in cautions if not rule.when.architectures]),
    )
    for name, title, points in found:
        yield Section(name=name, title=title, points=tuple(points))


def rules_on(matrix: Matrix, subject: Subject) -> tuple[Rule, ...]:
    """Return every rule, written or derived, that speaks of a combination, even of one never built."""
    return tuple(rule for rule in (*matrix.rules, *matrix.derived_rules) if _speaks(rule.when, subject))


def _answer(
    matrix: Matrix, request: Request, cards: tuple[str, ...]
) -> tuple[Choice, None] | tuple[None, RocmatrixError]:
    try:
        return resolve(matrix, request, cards=cards), None
    except RocmatrixError as error:
        if error.code == "RM010":
            raise
        return None, error


def _subject(matrix: Matrix, request: Request, choice: Choice | None, cards: tuple[str, ...]) -> Subject:
    """Return the cell's combination, else the newest release asked for, one that no rule breaks before others."""
    named = choice.cell if choice else matrix.cell(request.cell) if request.cell else None
    if named is not None:
        return _built(named.architecture, named.release)
    request, _ = with_hardware(matrix, request, cards)
    gfx = None if request.gpu == "cpu" else request.gpu
    asked = [_built(gfx, release) for release in releases_of(matrix, request)]
    sound = (subject for subject in asked if verdict_of(rules_on(matrix, subject)) != "broken")
    never_built = Subject(architecture=gfx, torch=request.torch, rocm=request.rocm, release=None)
    return next(sound, asked[0] if asked else never_built)


def _built(architecture: str | None, release: Release) -> Subject:
    return Subject(architecture=architecture, torch=release.torch, rocm=release.rocm, release=release)


def _speaks(when: Selector, subject: Subject) -> bool:
    if subject.torch is None:
        return False
    return when.matches(architecture=subject.architecture, torch=subject.torch, rocm=subject.rocm)


def _rule(rule: Rule, today: str) -> Point:
    return Point(
        about=rule.id,
        says=rule.reason,
        evidence=rule.evidence,
        expires=rule.expires,
        expired=rule.expired(today),
        verdict=rule.verdict,
        given=rule.when.given,
        claim=rule.claim,
    )


def _point(about: str, says: str, evidence: Evidence, today: str) -> Point:
    expires = derive.look_again(evidence.date)
    return Point(about=about, says=says, evidence=evidence, expires=expires, expired=expires < today)


def _support(architecture: Architecture | None, subject: Subject, today: str) -> Iterator[Point]:
    if subject.release is not None:
        code = subject.release.device_code
        yield _point("device code", _device_code(subject.release, subject.architecture), code.evidence, today)
    if architecture is not None and subject.rocm is not None:
        official = architecture.official
        listed = f"{'on' if official.covers(subject.rocm) else 'not on'} AMD's list for ROCm {subject.rocm}"
        says = "; ".join([listed, *([official.note] if official.note else [])])
        yield _point("official support", says, official.evidence, today)


def _device_code(release: Release, architecture: str | None) -> str:
    if architecture is None:
        return f"served by {release.index}"
    if release.architectures is None:
        return f"which architectures {release.name} holds code for is not recorded"
    held = "holds" if architecture in release.architectures else "holds no"
    layout = "in one wheel for all" if release.device_code.layout == "bundled" else "in a package for each architecture"
    return f"{release.name} {held} code for {architecture}, {layout}; served by {release.index.split('://')[-1]}"


def _overrides(architecture: Architecture | None, subject: Subject, today: str) -> Iterator[Point]:
    for override in architecture.overrides if architecture else ():
        if subject.torch and override.when.matches(architecture=None, torch=subject.torch, rocm=subject.rocm):
            says = f"{override.effect}: {override.why}"
            yield _point(f"HSA_OVERRIDE_GFX_VERSION={override.value}", says, override.evidence, today)


def _libraries(matrix: Matrix, subject: Subject, today: str) -> Iterator[Point]:
    for library, statements in matrix.libraries.by_name.items() if subject.rocm else ():
        for entry in statements:
            if _speaks(entry.when, subject):
                yield _point(LIBRARY_TITLES[library], entry.words(subject.architecture), entry.evidence, today)


def _described_choice(choice: Choice) -> dict[str, Any]:
    cell = choice.cell
    return {
        "name": cell.name,
        "why": choice.why,
        "recommended": cell.recommended,
        "official": cell.official,
        "locked": cell.unlocked_because is None,
        "unlocked_because": cell.unlocked_because,
        "evidence": cell.evidence.model_dump(),
        "passed_over": [vars(other) for other in choice.passed_over],
    }


def _described_refusal(error: RocmatrixError) -> dict[str, Any]:
    return {"code": error.code, "what": error.what, "where": error.where, "why": error.why, "next": error.next}
