"""The points of an explanation: everything in the matrix for and against a combination, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rocmatrix.matrix import derived_rules
from rocmatrix.matrix.matrix import Architecture, Matrix, Release
from rocmatrix.matrix.resolver import axes
from rocmatrix.matrix.rule import Claim, Rule
from rocmatrix.matrix.statement import Evidence, Selector, Verdict

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
    """The combination argued about. Without a `release` these versions were never built together.

    `card` is set where the request names one card and not the architecture as a whole.
    """

    architecture: str | None
    torch: str | None
    rocm: str | None
    release: Release | None
    card: str | None = None

    @property
    def summary(self) -> str:
        """The combination as readable text."""
        none = "no ROCm" if self.release or self.architecture is None else "ROCm of any version"
        rocm = f"ROCm {self.rocm}" if self.rocm else none
        card = f"{self.card} ({self.architecture})" if self.card else self.architecture or "no card"
        return f"{card}, {rocm}, torch {self.torch or 'of any version'}"


def sections(matrix: Matrix, subject: Subject, *, today: str, allowed: tuple[Release, ...] = ()) -> Iterator[Section]:
    """Yield all that is known of a combination: rules, neighbours, cautions, support, overrides, libraries.

    Args:
        today: date that statements expire by, such as 2026-11-21.
        allowed: releases that the request would have allowed, for the section on neighbours.
    """
    rules = rules_on(matrix, subject)
    cautions = [rule for rule in rules if not rule.decides]
    architecture = matrix.architectures.get(subject.architecture or "")
    found = (
        ("rules", "What judges it", [_rule(rule, today) for rule in rules if rule.decides]),
        ("neighbours", "What is known of the neighbouring releases", _neighbours(matrix, subject, allowed, today)),
        ("cautions", "What to beware of", [_rule(rule, today) for rule in cautions if rule.when.architectures]),
        ("support", "Who builds and supports it", _support(matrix, subject, today)),
        ("overrides", "HSA_OVERRIDE_GFX_VERSION", _overrides(architecture, subject, today)),
        ("libraries", "Libraries and drivers", _libraries(matrix, subject, today)),
        ("general", "True of every card", [_rule(rule, today) for rule in cautions if not rule.when.architectures]),
    )
    for name, title, points in found:
        yield Section(name=name, title=title, points=tuple(points))


def rules_on(matrix: Matrix, subject: Subject) -> tuple[Rule, ...]:
    """Return every rule, written or derived, that applies to a combination, even one never built."""
    return tuple(rule for rule in (*matrix.rules, *matrix.derived_rules) if _applies(rule.when, subject))


def _applies(when: Selector, subject: Subject) -> bool:
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
    expires = derived_rules.look_again(evidence.date)
    return Point(about=about, says=says, evidence=evidence, expires=expires, expired=expires < today)


def _neighbours(matrix: Matrix, subject: Subject, allowed: tuple[Release, ...], today: str) -> Iterator[Point]:
    near = axes.neighbours(matrix, architecture=subject.architecture, release=subject.release, allowed=allowed)
    for release, rule in near:
        point = _rule(rule, today)
        yield replace(point, says=f"{release.name}: {point.says}")


def _support(matrix: Matrix, subject: Subject, today: str) -> Iterator[Point]:
    if subject.release is not None:
        code = subject.release.device_code
        yield _point("device code", _device_code(subject.release, subject.architecture), code.evidence, today)
    support = matrix.support_of(subject.architecture, subject.rocm, card=subject.card)
    for table in support.speaking if subject.architecture is not None else ():
        listed = support.summary(subject.architecture or "", subject.card)
        says = "; ".join([f"ROCm {subject.rocm}: {listed}", *([table.note] if table.note else [])])
        yield _point("AMD's list", says, table.evidence, today)


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
            if _applies(entry.when, subject):
                yield _point(LIBRARY_TITLES[library], entry.summary(subject.architecture), entry.evidence, today)
