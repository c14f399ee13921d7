"""Outdated parts of the matrix: expired statements, and releases newer than the recommended ones.

Pure but for `ask`, which reads an index over the network and never fails because there is none.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from http.client import HTTPException
from itertools import chain
from typing import Any

from packaging.version import InvalidVersion, Version

from rocmatrix.matrix.matrix import Cell, Matrix, Release
from rocmatrix.matrix.resolver.judgement import Judgement, judge
from rocmatrix.matrix.resolver.statements import RULES_FILE, StatementAt, statements
from rocmatrix.matrix.rule import Rule

SCHEMA = 2
TIMEOUT = 10  # seconds for an index to answer
_WHEEL = re.compile(r"\btorch-(\d[\w.]*)(?:\+|%2B)[\w.]+-cp\d+")


@dataclass(frozen=True, kw_only=True)
class Newer:
    """A release newer than the one recommended for an architecture. `cell` is None where there is none."""

    architecture: str | None
    recommended: str
    release: str
    verdict: Judgement
    cell: str | None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Versions that an index offers and the matrix lacks, or why the query failed."""

    index: str
    unknown: tuple[str, ...] = ()
    unheard_because: str | None = None


@dataclass(frozen=True, kw_only=True)
class Outdated:
    """All that asks to be looked at again on one day. `answers` is empty where no index was asked.

    `aged` are the statements that are no rules of the matrix: companions, releases, lists, cells.
    """

    today: str
    expired: tuple[Rule, ...]
    aged: tuple[StatementAt, ...]
    newer: tuple[Newer, ...]
    answers: tuple[Answer, ...] = ()

    def described(self) -> dict[str, Any]:
        """Return it for programs, with the version of this layout."""
        return {
            "schema": SCHEMA,
            "today": self.today,
            "expired": [{"rule": r.id, "expires": r.expires, **r.evidence.model_dump()} for r in self.expired],
            "aged": [statement.described(self.today) for statement in self.aged],
            "newer": [asdict(entry) for entry in self.newer],
            "indexes": [asdict(answer) for answer in self.answers],
        }


def outdated(
    matrix: Matrix, *, today: str, answers: Iterable[Answer] = (), others: Iterable[StatementAt] = ()
) -> Outdated:
    """Return the statements that expired before `today`, oldest first, and the releases that a person may move to.

    Args:
        today: date that statements expire by, such as 2026-11-21.
        answers: what package indexes serve; empty to compare dates only.
        others: statements that are in no file of the matrix itself, such as those of the doctor.
    """
    every = chain(statements(matrix), others)
    aged = (s for s in every if s.expired(today) and not (s.claim or s.file == RULES_FILE))
    rules = (rule for rule in (*matrix.rules, *matrix.derived_rules) if rule.expired(today))
    return Outdated(
        today=today,
        expired=tuple(sorted(rules, key=lambda rule: (rule.expires, rule.id))),
        aged=tuple(sorted(aged, key=lambda statement: (statement.expires, statement.file, statement.entry))),
        newer=tuple(entry for cell in matrix.cells if cell.recommended for entry in _newer(matrix, cell)),
        answers=tuple(answers),
    )


def _newer(matrix: Matrix, cell: Cell) -> list[Newer]:
    """Return the releases of the same kind that came later and that no rule breaks on the cell's architecture."""
    kind = (r for r in matrix.releases if (r.rocm is None) == (cell.release.rocm is None))
    later = sorted((r for r in kind if is_newer(r, cell.release)), key=age)
    names = {(other.architecture, other.release.name): other.name for other in matrix.cells}
    entries = (
        Newer(
            architecture=cell.architecture,
            recommended=cell.release.name,
            release=release.name,
            verdict=_headline(matrix, cell.architecture, release),
            cell=names.get((cell.architecture, release.name)),
        )
        for release in later
    )
    return [entry for entry in entries if entry.verdict != "broken"]


def _headline(matrix: Matrix, architecture: str | None, release: Release) -> Judgement:
    rules = matrix.rules_on(architecture, release)
    return judge(matrix, architecture=architecture, release=release, rules=rules).verdict


def age(release: Release) -> tuple[Version, Version]:
    """Return the order of releases: by ROCm, then by torch."""
    return Version(release.rocm or "0"), Version(release.torch)


def is_newer(release: Release, than: Release) -> bool:
    """Return whether a release has a newer ROCm or torch, and neither of them older."""
    pairs = list(zip(age(release), age(than), strict=True))
    return all(one >= other for one, other in pairs) and any(one > other for one, other in pairs)


def indexes(matrix: Matrix) -> tuple[str, ...]:
    """Return the indexes of the recommended cells, each once."""
    return tuple(dict.fromkeys(cell.release.index for cell in matrix.cells if cell.recommended))


def query(matrix: Matrix, index: str) -> Answer:
    """Ask one index for versions of torch that the matrix does not hold. Without a network the answer states so."""
    try:
        with urllib.request.urlopen(f"{index}/torch/", timeout=TIMEOUT) as response:
            listing = response.read().decode("utf-8", errors="replace")
    except (OSError, ValueError, HTTPException) as error:  # the last: a proxy's malformed address, an answer cut off
        return Answer(index=index, unheard_because=str(error))
    return compare(matrix, index, listing)


def compare(matrix: Matrix, index: str, listing: str) -> Answer:
    """Compare the listing of an index with the matrix. A page that names no wheel counts as a failed query.

    Args:
        index: name of the package index in the matrix.
        listing: HTML of its page of torch's wheels.
    """
    served = {_version(text) for text in _WHEEL.findall(listing)} - {None}
    if not served:
        return Answer(index=index, unheard_because="its page names no wheel of torch")
    known = {Version(release.torch) for release in matrix.releases if release.index == index}
    newest = max(known)
    unknown = sorted(version for version in served if version is not None and version > newest)
    return Answer(index=index, unknown=tuple(str(version) for version in unknown))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
