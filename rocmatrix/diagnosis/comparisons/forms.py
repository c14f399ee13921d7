"""Models of comparisons.yaml: values that a transcript states, and rules that relate them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from rocmatrix.diagnosis import pattern
from rocmatrix.diagnosis.comparisons import condition
from rocmatrix.diagnosis.comparisons.typed import Kind
from rocmatrix.diagnosis.search import literals
from rocmatrix.diagnosis.signature import PatternText, Signature
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.resolver.statements import StatementAt, dated
from rocmatrix.matrix.statement import Strict, Text
from rocmatrix.runtime.errors import suggestion
from rocmatrix.runtime.paths import COMPARISONS, ROOT

FILE = COMPARISONS.relative_to(ROOT).as_posix()
SHORTEST = 3  # characters of a fixed text that a line must hold
_parser: Any = re._parser  # type: ignore[attr-defined]  # the standard library's own parser of patterns


def _expression(text: str) -> str:
    try:
        pattern.checked_repeats(text)
    except pattern.PatternError as error:
        raise PydanticCustomError("expression", "'{text}': {why}", {"text": text, "why": str(error)}) from None
    return text


def _condition(text: str) -> str:
    try:
        condition.parse(text)
    except ValueError as error:
        raise PydanticCustomError("condition", "'{text}': {why}", {"text": text, "why": str(error)}) from None
    return text


Expression = Annotated[str, AfterValidator(_expression)]
ConditionText = Annotated[str, AfterValidator(_condition)]


class Read(Strict):
    """One form in which a value is printed.

    `line` is searched in lines without decoration. With `command`, a whole command without sudo, only the lines that it
    printed count; with `empty` the value is known where it printed nothing. With `under`, only indented lines count
    that stand below a line that it matches. The group `value`, or `gives` instead of it, is the value; `table` turns
    what was found into another text, and leaves out what it does not hold. `unit` is put behind a size: K, M or G.
    """

    line: Expression | None = None
    command: Expression | None = None
    under: Expression | None = None
    gives: str | None = None
    empty: bool = False
    table: dict[str, str] = Field(default_factory=dict)
    unit: str = ""

    @cached_property
    def literals(self) -> frozenset[str]:
        """Texts in small letters of which each line that this form begins at holds one."""
        return literals.required(_parser.parse(self.command or self.line)) or frozenset()

    @model_validator(mode="after")
    def _found(self) -> Read:
        if self.empty != (self.line is None) or (self.empty and self.command is None):
            raise PydanticCustomError("form", "a form has `line`, or `command` with `empty`")
        if min(map(len, self.literals), default=0) < SHORTEST:
            raise PydanticCustomError("form", "`{it}` holds no fixed text", {"it": str(self.command or self.line)})
        if self.line is not None and self.gives is None and "(?P<value>" not in self.line:
            raise PydanticCustomError("form", "`line` has no group `value` and the form no `gives`")
        return self


class ValueForm(Strict):
    """A value: its kind, what it is, as text, and the forms in which programs print it."""

    kind: Kind
    says: Text
    reads: list[Read] = Field(default_factory=list)


class Comparison(Signature):
    """A rule on values, with all that a signature has but patterns.

    It holds where all conditions of `holds` do and none of `except_where`. A certain one has the kind `cause`; one of
    another kind only makes causes that name it more likely. With `shown` false it is no answer of its own. It `proves`
    why something failed, or a state in which not everything fails: that comes after causes that a line states.
    `sample` is a transcript in which it holds, `healthy` one like it in which it does not.
    """

    match: list[PatternText] = Field(default_factory=list)
    holds: list[ConditionText] = Field(min_length=1)
    except_where: list[ConditionText] = Field(default_factory=list)
    shown: bool = True
    proves: Literal["failure", "state"] = "failure"
    healthy: Text


class Comparisons(Strict):
    """All of comparisons.yaml."""

    values: dict[str, ValueForm]
    rules: list[Comparison]

    @model_validator(mode="after")
    def _consistent(self) -> Comparisons:
        for rule in self.rules:
            for name in _named(rule, self.values):
                if name not in self.values:
                    context = {"id": rule.id, "name": name, "hint": suggestion(name, self.values)}
                    raise PydanticCustomError("value", "'{id}' names '{name}', which is no value; {hint}", context)
        return self


def _named(rule: Comparison, values: dict[str, ValueForm]) -> Iterator[str]:
    """Yield the values that a rule names: on the left of its conditions, and on the right what looks like one."""
    for text in (*rule.holds, *rule.except_where):
        one = condition.parse(text)
        yield one.left
        if "_" in one.right:
            yield one.right


NONE = Comparisons(values={}, rules=[])


def statements(root: Path) -> Iterator[StatementAt]:
    """Yield every rule as a statement with its evidence, and the day on which it asks to be looked at again."""
    return (dated(FILE, one.id, one.filled(one.cause, ""), one.evidence) for one in load(root).rules)


def load(root: Path) -> Comparisons:
    """Read comparisons.yaml of the checkout. Raises RM001 with every mistake and its line, RM002."""
    return matrix_file.part(root, FILE, Comparisons)
