"""Models of rocmatrix/diagnosis/signatures.yaml: the texts of a failure, its cause and its remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, RootModel, model_validator
from pydantic_core import PydanticCustomError

from rocmatrix.diagnosis import codes as code_tables
from rocmatrix.diagnosis import pattern
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.resolver.statements import StatementAt, dated
from rocmatrix.matrix.rule import RuleId
from rocmatrix.matrix.statement import Evidence, Selector, Strict, Text
from rocmatrix.runtime.errors import suggestion
from rocmatrix.runtime.paths import ROOT, SIGNATURES

SIGNATURES_FILE = SIGNATURES.relative_to(ROOT).as_posix()
# cause: the words name what is wrong. symptom: they say what broke, for one of several reasons. aftermath: something
# else failed before. degraded: the run goes on, slower or at risk. note: harmless, and often taken for the cause.
Kind = Literal["cause", "symptom", "aftermath", "degraded", "note"]
FAILURES: tuple[Kind, ...] = ("cause", "symptom", "aftermath")
Area = Literal[
    "kernels", "driver", "container", "memory", "fault", "collectives", "network", "convolutions", "attention",
    "compile", "numbers", "packages", "host", "build", "program",
]  # fmt: skip
# How the pattern was compared with what is really printed.
Checked = Literal["in its source", "in the report", "not reached"]


def _pattern(text: str) -> str:
    try:
        pattern.parse(text)
    except pattern.PatternError as error:
        raise PydanticCustomError("pattern", "'{text}': {why}", {"text": text, "why": str(error)}) from None
    return text


PatternText = Annotated[str, AfterValidator(_pattern)]
_PLACE = re.compile(r"\{(\w+)\|([^{}|]+)\}")


def _values(text: str) -> str:
    try:
        pattern.checked_groups(text)
    except pattern.PatternError as error:
        raise PydanticCustomError("values", "'{text}': {why}", {"text": text, "why": str(error)}) from None
    return text


class Possibility(Strict):
    """One cause that a symptom can have, and the `test` that decides: a command, a log line or a version.

    `signs` are patterns of the log that show it, `hints` those that only make it more likely: they put it before others
    and decide nothing. `host` are ids of doctor's checks whose failure shows it: where one warns it is more likely.
    `compared` are rules of comparisons.yaml that show it where they are certain, and else make it more likely.
    `when` is where it applies: elsewhere it comes last. `unlisted`: it is that this ROCm does not support the card, so
    AMD's lists are asked. Values of the matched line stand in both texts as in a signature's cause.
    """

    says: Text
    test: Text
    signs: list[PatternText] = Field(default_factory=list)
    hints: list[PatternText] = Field(default_factory=list)
    host: list[str] = Field(default_factory=list)
    compared: list[str] = Field(default_factory=list)
    when: Selector = Selector()
    unlisted: bool = False

    @cached_property
    def patterns(self) -> tuple[pattern.Pattern, ...]:
        """The signs, ready for squeezed text."""
        return tuple(map(pattern.parse, self.signs))

    @cached_property
    def leanings(self) -> tuple[pattern.Pattern, ...]:
        """The hints, ready for squeezed text."""
        return tuple(map(pattern.parse, self.hints))


class Signature(Strict):
    """One way to fail. `match` are patterns of which one suffices; a match of it hides those it `refines`.

    `when` states where it was seen: elsewhere it is less likely, not impossible. `rules` are those of the matrix on
    the same subject. `next` stands where another step than its area's leads on. `causes` are what can be
    behind a symptom, the most frequent first; `cause` is then what is certain. `leads` makes a degraded state the
    first answer where the failures it names were seen as well: they follow from it. A `family` is known by the form of
    a message alone (an error code, a function's name, a compiler's line): among its kind it comes last, and is left out
    where another signature knows the same line. `uncaught` is the message of an exception: it counts only where a line
    begins with it, near the end of the log. A line that one of `unless` matches (a warning, a retry) does not count.
    `values` is a regular expression with named groups, searched in the matched line and the two after it: what it finds
    stands in title and cause in place of `{name|words}`, and `words` where it finds nothing; `name2` is another `name`.
    `codes` names the table in which the value `code` is looked up, after `scope` and a dot where there is one:
    `{meaning|words}` is what it means.
    `{raised|words}` and `{caller|words}` are the packages of the traceback's last frames (search/frames.py).
    """

    id: RuleId
    title: Text
    kind: Kind
    area: Area
    match: list[PatternText] = Field(min_length=1)
    sample: Text
    cause: Text
    remedy: Text
    next: Text | None = None
    when: Selector = Selector()
    causes: list[Possibility] = Field(default_factory=list)
    refines: list[RuleId] = Field(default_factory=list)
    leads: list[RuleId] = Field(default_factory=list)
    family: bool = False
    uncaught: bool = False
    unless: list[PatternText] = Field(default_factory=list)
    values: Annotated[str, AfterValidator(_values)] | None = None
    codes: code_tables.Table | None = None
    rules: list[RuleId] = Field(default_factory=list)
    evidence: Evidence
    checked: Checked

    @cached_property
    def patterns(self) -> tuple[pattern.Pattern, ...]:
        """The patterns, ready for squeezed text."""
        return tuple(map(pattern.parse, self.match))

    @cached_property
    def exceptions(self) -> tuple[pattern.Pattern, ...]:
        """The patterns of lines that do not count, ready for squeezed text."""
        return tuple(map(pattern.parse, self.unless))

    @cached_property
    def excused_by_number(self) -> bool:
        """Whether a pattern of lines that do not count names a digit: then lines of other digits are not alike."""
        return any(re.search("[0-9]", re.sub(r"\{[\d,]*\}", "", text)) for text in self.unless)

    def pattern_texts(self) -> Iterator[str]:
        """Yield every pattern as it is written: of the failure, of lines that do not count, of signs and hints."""
        yield from (*self.match, *self.unless)
        yield from (text for cause in self.causes for text in (*cause.signs, *cause.hints))

    @cached_property
    def names_packages(self) -> bool:
        """Whether its words have a place for the packages of a traceback."""
        words = " ".join([self.title, self.cause, *(row.says + row.test for row in self.causes)])
        return any(place[1] in ("raised", "caller") for place in _PLACE.finditer(words))

    def filled(self, text: str, line: str, packages: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return a text of this signature with the values of a matched line in their places.

        Args:
            text: title, cause or one of the causes, with places such as `{package|the package}`.
            line: the matched line with those after it; empty where there is none.
            packages: what the traceback's frames name, as `raised` and `caller`.
        """
        found = re.search(self.values, line) if self.values and line else None
        known = dict(packages)
        for name, value in found.groupdict().items() if found else ():
            if value:
                known[name.rstrip("0123456789")] = value.strip()
        code = ".".join(filter(None, (known.get("scope"), known.get("code", ""))))
        if self.codes and (known_code := code_tables.meaning(self.codes, code)):
            known["meaning"] = known_code
        return _PLACE.sub(lambda place: known.get(place[1], place[2]), text)

    @property
    def is_failure(self) -> bool:
        """Whether it can be why a run ended."""
        return self.kind in FAILURES


class Signatures(RootModel[list[Signature]]):
    """All of rocmatrix/diagnosis/signatures.yaml, in the order of the file."""

    @model_validator(mode="after")
    def _consistent(self) -> Signatures:
        known = [signature.id for signature in self.root]
        for signature in self.root:
            if known.count(signature.id) > 1:
                raise PydanticCustomError("repeated", "'{id}' is given more than once", {"id": signature.id})
            for other in (*signature.refines, *signature.leads):
                if other not in known or other == signature.id:
                    context = {"id": signature.id, "other": other, "hint": suggestion(other, known)}
                    raise PydanticCustomError("refines", "'{id}' refines '{other}', which is none; {hint}", context)
        if looped := _looped({signature.id: signature.refines for signature in self.root}):
            raise PydanticCustomError(
                "loop", "'{id}' refines itself by way of others: all would be hidden", {"id": looped}
            )
        return self


def _looped(refines: Mapping[str, Collection[str]]) -> str | None:
    """Return a signature that others lead back to, or None. Takes away what refines nothing that is left."""
    left = dict(refines)
    while ends := [name for name, others in left.items() if not left.keys() & set(others)]:
        left = {name: others for name, others in left.items() if name not in ends}
    return min(left, default=None)


def statements(root: Path) -> Iterator[StatementAt]:
    """Yield every signature as a statement with its evidence, and the day on which it asks to be looked at again."""
    return (dated(SIGNATURES_FILE, one.id, one.filled(one.cause, ""), one.evidence) for one in load(root))


def load(root: Path) -> tuple[Signature, ...]:
    """Read rocmatrix/diagnosis/signatures.yaml of the checkout. Raises RM001 with every mistake and its line, RM002."""
    return tuple(matrix_file.part(root, SIGNATURES_FILE, Signatures).root)
