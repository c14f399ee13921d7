"""Companion packages: which version goes with which torch, and on which architectures it works."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from rocmatrix.matrix.rule import Rule, verdict_of
from rocmatrix.matrix.statement import Evidence, RangeText, Selector, Strict, Text, Verdict


class Pairing(Strict):
    """The versions of a companion that go with a range of combinations."""

    when: Selector
    version: RangeText
    evidence: Evidence


class Companion(Strict):
    """A package that can be added to an image. Its rules judge it on a combination that works by itself.

    `versions` is empty where each release of torch names its own version, such as torchvision's, and
    `provided` states that the release's own lock holds the package already. `no_wheel` states why no index serves a
    wheel of it for ROCm, and how to come by one: such a package is refused.
    """

    package: Text
    provided: bool = False
    no_wheel: Text | None = None
    versions: list[Pairing] = Field(default_factory=list)
    rules: list[Rule] = Field(min_length=1)

    def rules_on(self, *, architecture: str | None, torch: str, rocm: str | None) -> tuple[Rule, ...]:
        """Return the rules on the package that apply to one combination.

        Args:
            architecture: gfx name; None for the CPU.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
        """
        axes: dict[str, Any] = {"architecture": architecture, "torch": torch, "rocm": rocm}
        return tuple(rule for rule in self.rules if rule.when.matches(**axes))

    def verdict(self, *, architecture: str | None, torch: str, rocm: str | None) -> Verdict:
        """Return the worst that a rule states of the package there, `untested` where none applies.

        Args:
            architecture: gfx name; None for the CPU.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
        """
        return verdict_of(self.rules_on(architecture=architecture, torch=torch, rocm=rocm))

    def version(self, *, architecture: str | None, torch: str, rocm: str | None) -> str | None:
        """Return the range of versions that goes with a combination, None where nothing is known.

        Args:
            architecture: gfx name; None for the CPU.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
        """
        axes: dict[str, Any] = {"architecture": architecture, "torch": torch, "rocm": rocm}
        return next((pairing.version for pairing in self.versions if pairing.when.matches(**axes)), None)
