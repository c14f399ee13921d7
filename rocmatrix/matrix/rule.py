"""Rules: what is known of a range of combinations, in our own text, with its sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import StringConstraints

from rocmatrix.matrix.statement import Date, Evidence, RangeText, Selector, Strict, Text, Verdict

RuleId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")]
_WEIGHTIEST_FIRST: tuple[Verdict, ...] = ("broken", "degraded", "works", "untested")


class Claim(Strict):
    """What a report states where another source states otherwise. `stands` is true where the report wins."""

    says: Text
    stands: bool
    evidence: Evidence


class Rule(Strict):
    """One statement. Where a claim contradicts it, `verdict` follows the side that stands.

    `drivers` are the versions of AMD's driver module under which a report was made, where it states so.
    """

    id: RuleId
    when: Selector
    verdict: Verdict
    reason: Text
    claim: Claim | None = None
    drivers: RangeText | None = None
    evidence: Evidence
    expires: Date

    @property
    def decides(self) -> bool:
        """Whether it judges the combination itself. A caution holds only in the circumstance it names."""
        return self.when.given is None

    def expired(self, today: str) -> bool:
        """Return whether the rule asks to be looked at again; both are dates such as 2026-11-21."""
        return self.expires < today

    @property
    def summary(self) -> str:
        """The reason with its circumstance, and with the claim against it and what became of that."""
        text = f"where {self.when.given}: {self.reason}" if self.when.given else self.reason
        if self.claim is None:
            return text
        return f"{text}. Reported: {self.claim.says}; {'this stands' if self.claim.stands else 'refuted'}"


def verdict_of(rules: Iterable[Rule]) -> Verdict:
    """Return the most severe verdict of the deciding rules; `untested` where none decides."""
    found = {rule.verdict for rule in rules if rule.decides}
    return next((verdict for verdict in _WEIGHTIEST_FIRST if verdict in found), "untested")
