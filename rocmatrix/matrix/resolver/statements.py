"""Every statement of the matrix with its evidence: what it states, where it stands, its sources and its age.

Pure: today's date is a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from rocmatrix.matrix import derived_rules
from rocmatrix.matrix.matrix import Architecture, Matrix
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence

RULES_FILE = "matrix/rules.yaml"


@dataclass(frozen=True, kw_only=True)
class StatementAt:
    """One statement: the file and entry it stands in, its words, its evidence, and the day it asks to be looked at."""

    file: str
    entry: str
    says: str
    evidence: Evidence
    expires: str
    claim: bool = False

    def age_days(self, today: str) -> int:
        """Return the days since its sources were read."""
        return (date.fromisoformat(today) - date.fromisoformat(self.evidence.date)).days

    def expired(self, today: str) -> bool:
        """Return whether it is past its day."""
        return self.expires < today

    def described(self, today: str) -> dict[str, Any]:
        """Return it for programs."""
        reported = {"file": self.file, "entry": self.entry, "says": self.says, "claim": self.claim}
        return {**reported, **self.evidence.model_dump(), "expires": self.expires, "age_days": self.age_days(today)}


def statements(matrix: Matrix) -> Iterator[StatementAt]:
    """Yield every statement that was written with evidence, file by file. Derived rules follow from these."""
    for rule in matrix.rules:
        yield from _of_rule(RULES_FILE, rule)
    for companion in matrix.companions:
        for pairing in companion.versions:
            says = f"{pairing.version} goes with torch {pairing.when.torch or 'of any version'}"
            yield dated("matrix/companions.yaml", companion.package, says, pairing.evidence)
        for rule in companion.rules:
            yield from _of_rule("matrix/companions.yaml", rule)
    for gfx, architecture in matrix.architectures.items():
        yield from _of_architecture(gfx, architecture)
    yield from _of_releases(matrix)
    yield from _of_tables(matrix)
    yield from _of_cells(matrix)


def _of_rule(file: str, rule: Rule) -> Iterator[StatementAt]:
    yield StatementAt(file=file, entry=rule.id, says=rule.reason, evidence=rule.evidence, expires=rule.expires)
    if rule.claim is not None:
        claim = rule.claim
        yield StatementAt(
            file=file, entry=rule.id, says=claim.says, evidence=claim.evidence, expires=rule.expires, claim=True
        )


def _of_architecture(gfx: str, architecture: Architecture) -> Iterator[StatementAt]:
    file = "matrix/architectures.yaml"
    yield dated(file, gfx, f"its cards are {', '.join(architecture.cards)}", architecture.evidence)
    if architecture.also is not None:
        yield dated(file, gfx, f"also known as {', '.join(architecture.also.names)}", architecture.also.evidence)
    for override in architecture.overrides:
        yield dated(file, f"{gfx} {override.value}", f"{override.effect}: {override.why}", override.evidence)


def _of_releases(matrix: Matrix) -> Iterator[StatementAt]:
    file = "matrix/releases.yaml"
    for series in matrix.series:
        name = f"torch {', '.join(series.torch)} for ROCm {', '.join(series.rocm) or 'none'}"
        held = ", ".join(series.device_code.architectures or []) or "no architecture known"
        yield dated(file, name, f"Pythons {', '.join(series.pythons) or 'not known'}", series.evidence)
        yield dated(file, name, f"device code for {held}", series.device_code.evidence)


def _of_tables(matrix: Matrix) -> Iterator[StatementAt]:
    for library, entries in matrix.libraries.by_name.items():
        for entry in entries:
            yield dated("matrix/libraries.yaml", library, entry.note, entry.evidence)
    for kernels in matrix.kernels:
        yield dated("matrix/kernels.yaml", kernels.library, kernels.note, kernels.evidence)
    for table in matrix.support:
        says = f"AMD lists {sum(map(len, table.listed.values()))} cards"
        yield dated("matrix/support.yaml", f"ROCm {', '.join(table.rocm)}", table.note or says, table.evidence)


def _of_cells(matrix: Matrix) -> Iterator[StatementAt]:
    file = "matrix.yaml"
    for name, base in matrix.bases.items():
        yield dated(file, name, f"{base.image} with Python {base.python}", base.evidence)
    for variable in matrix.environment:
        yield dated(file, variable.name, variable.why, variable.evidence)
    for name, entry in zip(matrix.cell_names, matrix.cell_entries, strict=True):
        yield dated(file, name, entry.why, entry.evidence)


def dated(file: str, entry: str, stated: str, evidence: Evidence) -> StatementAt:
    """Return a statement that names no day of its own: it asks to be looked at again after a year.

    Args:
        file: path in the checkout, such as matrix/libraries.yaml.
        entry: name of the entry in it.
        stated: the statement, as text.
    """
    return StatementAt(
        file=file, entry=entry, says=stated, evidence=evidence, expires=derived_rules.look_again(evidence.date)
    )
