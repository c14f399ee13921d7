"""The result of a check: whether it passed, and each thing that it found wrong, under a stable code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rocmatrix.runtime.errors import CATALOG

Status = Literal["passed", "failed", "not checked"]
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong: its code, what it is, and the places, at most a few of them."""

    code: str
    what: str
    places: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The finding on one line."""
        more = len(self.places) - SHOWN
        shown = ", ".join(map(printable, self.places[:SHOWN])) + (f" and {more} more" if more > 0 else "")
        return f"{self.code} {CATALOG[self.code].title}: {self.what}" + (f": {shown}" if shown else "")

    def described(self) -> dict[str, Any]:
        """Return the finding as plain data, with every place."""
        places = [printable(place) for place in self.places]
        return {"code": self.code, "title": CATALOG[self.code].title, "what": self.what, "places": places}


def printable(text: str) -> str:
    """Return text with what is unprintable escaped: names in an image are arbitrary bytes."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


@dataclass(frozen=True, kw_only=True)
class Check:
    """The outcome of one comparison. `summary` states what was compared, or why nothing was."""

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
