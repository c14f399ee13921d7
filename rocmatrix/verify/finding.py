"""What a check says: whether it passed, and each thing that it found wrong, under a stable code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rocmatrix.runtime.errors import CATALOG

Status = Literal["passed", "failed", "not checked"]
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong: its code, what it is in words, and the places, at most a few of them."""

    code: str
    what: str
    places: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The finding on one line."""
        more = len(self.places) - SHOWN
        shown = ", ".join(self.places[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"{self.code} {CATALOG[self.code].title}: {self.what}" + (f": {shown}" if shown else "")

    def described(self) -> dict[str, Any]:
        """Return the finding as plain data, with every place."""
        return {
            "code": self.code, "title": CATALOG[self.code].title, "what": self.what, "places": list(self.places),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Check:
    """The outcome of one comparison. `summary` says what was compared, or why nothing was."""

    name: str
    summary: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: bool = False
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """Failed where anything is wrong; a check that was left out never passes."""
        if self.findings:
            return "failed"
        return "not checked" if self.skipped else "passed"

    def described(self) -> dict[str, Any]:
        """Return the check as plain data."""
        return {
            "check": self.name,
            "status": self.status,
            "summary": self.summary,
            "findings": [finding.described() for finding in self.findings],
            "notes": list(self.notes),
            **self.data,
        }
