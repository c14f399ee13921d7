"""All checks on one host, and their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocmatrix.doctor import cards, driver, limits, state
from rocmatrix.doctor.catalog import Check, Finding, Status, registered
from rocmatrix.doctor.host import NO_CARD, Host
from rocmatrix.doctor.knowledge import HostKnowledge
from rocmatrix.host import inventory

TOPICS = (driver, cards, limits, state)  # each registers its checks when it is imported
CHECKS: tuple[Check, ...] = registered()
WORST_FIRST: tuple[Status, ...] = ("error", "warning", "unknown", "note", "ok", "not applicable")


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The findings in the order of their codes."""

    findings: tuple[Finding, ...]
    no_card: bool
    inventory: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether something stands in the way of a run. Nothing looked at is a failure too."""
        return not self.findings or any(finding.status == "error" for finding in self.findings)

    @property
    def summary(self) -> str:
        """How many findings there are of each kind, and what that means."""
        counts = Counter(finding.status for finding in self.findings)
        counted = ", ".join(f"{counts[status]} {status}" for status in WORST_FIRST if counts[status])
        if self.failed:
            return f"{counted}: what is marked error stops a run"
        ending = f"{NO_CARD}: CPU cells only" if self.no_card else "nothing stops a run"
        return f"{counted}: {ending}"

    def described(self) -> dict[str, Any]:
        """Return it as plain data."""
        checks = [finding.described() for finding in self.findings]
        return {"checks": checks, "summary": self.summary, "inventory": dict(self.inventory)}


def examine(host: Host, known: HostKnowledge) -> Examination:
    """Run every check. None raises: what cannot be read is reported as unknown."""
    findings = tuple(_findings(host, known))
    return Examination(findings=findings, no_card=host.absent, inventory=inventory.described(host.hardware))


def _findings(host: Host, known: HostKnowledge) -> Iterable[Finding]:
    for each in CHECKS:
        yield from each.findings(host, known)
