"""Models of the files in rocmatrix/diagnosis/signatures: the texts of a failure, its cause and its remedy.

Before a pattern is searched, white space, quotes, backslashes and letter case are taken out of log and pattern alike
(pattern.py), so a line may be wrapped anywhere. `.*` stands for at most 200 characters and `\\b` is known at either end
only. A level that a logger adds (INFO:, ERROR:) is taken off lines as well: a pattern that begins with one misses the
lines that are wrapped, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, RootModel
from pydantic_core import PydanticCustomError

from rocmatrix.diagnosis import codes as code_tables
from rocmatrix.diagnosis import pattern
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.resolver.statements import StatementAt, dated
from rocmatrix.matrix.rule import RuleId
from rocmatrix.matrix.statement import Evidence, Selector, Strict, Text
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.runtime.paths import ROOT, SIGNATURES

SIGNATURES_FOLDER = SIGNATURES.relative_to(ROOT).as_posix()
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
    """One file of rocmatrix/diagnosis/signatures, in its order."""


def load(root: Path) -> tuple[Signature, ...]:
    """Read the files of rocmatrix/diagnosis/signatures of the checkout, one for each area.

    Raises RM001 with every mistake of a file and its line, or one between two of them; RM002 where one is unreadable.
    """
    read = {area: matrix_file.part(root, file_of(area), Signatures).root for area in get_args(Area)}
    found = tuple(signature for signatures in read.values() for signature in signatures)
    for area, signatures in read.items():
        if mistake := next(_mistakes(area, signatures, Counter(one.id for one in found)), None):
            raise RocmatrixError("RM001", what=f"{file_of(area)}: {mistake}")
    if looped := _looped({signature.id: signature.refines for signature in found}):
        what = f"{SIGNATURES_FOLDER}: '{looped}' refines itself by way of others: all would be hidden"
        raise RocmatrixError("RM001", what=what)
    return found


def file_of(area: Area) -> str:
    """Return the path below the checkout of the file that has an area's signatures."""
    return f"{SIGNATURES_FOLDER}/{area}.yaml"


def _mistakes(area: Area, signatures: list[Signature], known: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with signatures of one file given how often each id is known in all."""
    for signature in signatures:
        if signature.area != area:
            yield f"'{signature.id}' is of the area {signature.area}; it stands in {file_of(signature.area)}"
        if known[signature.id] > 1:
            yield f"'{signature.id}' is given more than once"
        for other in (*signature.refines, *signature.leads):
            if other not in known or other == signature.id:
                yield f"'{signature.id}' refines '{other}', which is none; {suggestion(other, known)}"


def _looped(refines: Mapping[str, Collection[str]]) -> str | None:
    """Return a signature that others lead back to, or None. Takes away what refines nothing that is left."""
    left = dict(refines)
    while ends := [name for name, others in left.items() if not left.keys() & set(others)]:
        left = {name: others for name, others in left.items() if name not in ends}
    return min(left, default=None)


def statements(root: Path) -> Iterator[StatementAt]:
    """Yield every signature as a statement with its evidence, and the day on which it asks to be looked at again."""
    return (dated(file_of(one.area), one.id, one.filled(one.cause, ""), one.evidence) for one in load(root))
