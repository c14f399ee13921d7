"""The rules on environment variables: the models of matrix/environment.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, RootModel, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.naming import variables
from rocmatrix.matrix.rule import RuleId
from rocmatrix.matrix.statement import Evidence, Selector, Strict, Text

ENVIRONMENT_FILE = "matrix/environment.yaml"
Kind = Literal["invented", "not read", "malformed", "debug", "no-op", "harmful", "conflict", "never built"]
Severity = Literal["error", "warning", "note"]
Test = Literal[
    "override-native", "override-foreign", "override-any", "override-not-compiled", "differ", "never-compiled",
    "single-process", "both-set", "both-set-alike",
]  # fmt: skip
Name = Annotated[str, StringConstraints(pattern=r"^\*?[A-Z][A-Z0-9_]*\*?$")]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise PydanticCustomError(
            "pattern", "'{text}' is no pattern: {why}", {"text": text, "why": str(error)}
        ) from None
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


class EnvironmentRule(Strict):
    """One statement on variables, or on a command line: what it truly does, and what to do instead.

    `corrections` are wrong names with the right ones; `known` are right names, and what is nearly one of them is wrong.
    """

    id: RuleId
    names: list[Name] = Field(default_factory=list)
    corrections: dict[Name, Name] = Field(default_factory=dict)
    known: list[Name] = Field(default_factory=list)
    command: Pattern | None = None
    value: Pattern | None = None
    when: Selector = Selector()
    given: list[Name] = Field(default_factory=list)
    absent: list[Name] = Field(default_factory=list)
    test: Test | None = None
    kind: Kind
    severity: Severity
    truth: Text
    instead: Text
    evidence: Evidence

    @model_validator(mode="after")
    def _has_a_subject(self) -> EnvironmentRule:
        if bool(self.names or self.known) == bool(self.command):
            raise PydanticCustomError("subject", "give either names or a command", {})
        return self

    def names_it(self, name: str) -> bool:
        """Return whether the rule covers the variable `name`."""
        return any(_fits(pattern, name) for pattern in self.names) or bool(self.corrected(name))

    def corrected(self, name: str) -> list[str]:
        """Return up to three right names for one that is nearly right, the nearest first."""
        right = self.corrections.get(name)
        return [right] if right else variables.intended(name, self.known)


class EnvironmentRules(RootModel[list[EnvironmentRule]]):
    """All of matrix/environment.yaml, in the order of the file."""

    @model_validator(mode="after")
    def _once_each(self) -> EnvironmentRules:
        seen: set[str] = set()
        for rule in self.root:
            if rule.id in seen:
                raise PydanticCustomError("repeated", "the rule '{id}' is given a second time", {"id": rule.id})
            seen.add(rule.id)
        return self


def load(root: Path) -> tuple[EnvironmentRule, ...]:
    """Read matrix/environment.yaml of the checkout. Raises RM001 with every mistake and its line, RM002."""
    return tuple(matrix_file.part(root, ENVIRONMENT_FILE, EnvironmentRules).root)


def described(rules: Iterable[EnvironmentRule]) -> list[dict[str, Any]]:
    """Return rules as plain data."""
    return [rule.model_dump(mode="json", exclude_none=True) for rule in rules]


def _fits(pattern: str, name: str) -> bool:
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
