"""Patterns that white space, quotes and letter case cannot hide a match from, and that cannot run away.

A log is wrapped at any column, indented, quoted and escaped. So a text is *squeezed* before it is searched: white
space, quotes, backslashes and NULs go, letters become small. A pattern is written as an ordinary regular expression
and squeezed alike. Every repetition is bounded and none stands inside another, so a search takes a bounded number
of steps for each place where it begins.

Parsing some thousand patterns takes seconds, so what is derived from each stands in a generated file (known.json), by
its text. A pattern that is not there is parsed, and so is every one where this module or the one of literals changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from rocmatrix.diagnosis.search import known, literals

_parser: Any = re._parser  # type: ignore[attr-defined]  # the standard library's own parser of patterns

DROPPED = b" \t\r\n\v\f\"'`\\\0"
_SMALL = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
WIDEST = 4000  # bytes of squeezed text that a match may span: chunks overlap by more
AHEAD = 100  # most bytes that a look behind the end of a match takes
GAP, RUN = 200, 80  # most bytes that `.*` and any other open repetition stand for
_DROPPED_ESCAPES = frozenset("snrtvf\"'`\\")
_TOKEN = re.compile(
    r"(?P<item>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[:i]\)?|.)(?P<repeat>(?:[*+?]|\{\d*,?\d*\})[?+]?)?", re.DOTALL
)
_CAPITALS = re.compile(r"\\.|[A-Z]+", re.DOTALL)  # and escapes, of which a capital has another meaning
# the text of a pattern that begins with the name of an exception, or with several to choose from
_OF_EXCEPTION = re.compile(r"\(\?:(?:[A-Za-z ]+\|)*[A-Za-z]*Error\b")


def squeeze(text: bytes) -> bytes:
    """Return a text as patterns see it."""
    return text.translate(_SMALL, DROPPED)


def _small(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("\\") else found[0].lower()


class PatternError(ValueError):
    """A pattern that cannot be used, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A pattern for squeezed text.

    `whole_start` and `whole_end` ask for the edge of a word in the text itself. `width` is the most bytes of squeezed
    text that a match spans, `weight` the fewest: what makes one pattern more specific than another. `literals` are
    texts of which every match holds at least one, small and squeezed.
    """

    text: str
    whole_start: bool
    whole_end: bool
    width: int
    weight: int
    literals: frozenset[bytes]

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """The pattern for squeezed bytes: in small letters as these are, for what ignores case is searched slowly."""
        return re.compile(_CAPITALS.sub(_small, self.squeezed).encode())

    @property
    def squeezed(self) -> str:
        """The pattern as squeezed text is searched for it, without what asks for the edges of words."""
        return squeezed(self.text)

    @cached_property
    def others(self) -> list[frozenset[bytes]]:
        """Further sets of texts of which every match holds one; parsed anew, so not for each log."""
        sets = [frozenset(map(str.encode, texts)) for texts in literals.choices(_parser.parse(self.squeezed))]
        return [texts for texts in sets if texts != self.literals]

    @property
    def of_exception(self) -> bool:
        """Whether a match begins with the name of an exception."""
        return _OF_EXCEPTION.match(self.text) is not None

    @property
    def ahead(self) -> int:
        """How many bytes after a match decide on it: what must not follow, such as the name of a success."""
        return AHEAD if "(?!" in self.text or "(?=" in self.text else 0


@cache
def parse(text: str) -> Pattern:
    """Check a pattern and derive what a search needs of it. Raises PatternError with what is wrong with it."""
    body = text.removeprefix("(?i)")
    width, weight, fixed = known.derived(__file__).get(known.key(text)) or derived(text)
    return Pattern(
        text=text,
        whole_start=body.startswith(r"\b"),
        whole_end=body.endswith(r"\b"),
        width=width,
        weight=weight,
        literals=frozenset(literal.encode() for literal in fixed),
    )


@cache
def derived(text: str) -> known.Derived:
    """Check a pattern; return its width, weight and literals. Raises PatternError with what is wrong with it."""
    try:
        re.compile(text)
        tree = _parser.parse(squeezed(text))
        _check(tree)
    except re.error as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    weight, width = map(int, tree.getwidth())
    fixed = literals.required(tree) or frozenset()
    if width > WIDEST:
        raise PatternError(f"a match may span {width} bytes; at most {WIDEST} are allowed")
    if not fixed or min(map(len, fixed)) < literals.SHORTEST:
        raise PatternError(f"every match has to hold a fixed text of at least {literals.SHORTEST} characters")
    return width, weight, sorted(fixed)


def checked_groups(text: str) -> None:
    """Check an expression with named groups that is searched in one line that is shown. Raises PatternError."""
    checked_repeats(text)
    if not re.compile(text).groupindex:
        raise PatternError("it names no group")


def checked_repeats(text: str) -> None:
    """Check an expression that is searched in single lines as they are. Raises PatternError."""
    try:
        re.compile(text)
    except re.error as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    _check(_parser.parse(text))


def squeezed(text: str) -> str:
    """Return a pattern as it is searched in squeezed text, without what asks for the edges of words."""
    return "".join(_squeezed_tokens(text.removeprefix("(?i)").removeprefix(r"\b").removesuffix(r"\b")))


def _squeezed_tokens(body: str) -> Iterator[str]:
    for token in _TOKEN.finditer(body):
        item, repeat = _squeezed_item(token["item"]), token["repeat"] or ""
        if item:
            yield item + _bounded(repeat, GAP if item == "." else RUN)


def _squeezed_item(item: str) -> str:
    """Return one item of a pattern without what is dropped from texts; empty where nothing is left of it."""
    if item.startswith("["):
        return _squeezed_class(item)
    if item in ("^", "$", r"\b", r"\B", r"\A", r"\Z"):
        raise PatternError(f"{item} has no meaning where lines may be wrapped; only \\b at an end is known")
    if item == r"\S":
        return "."
    if item[0] == "\\" and item[1] in _DROPPED_ESCAPES:
        return ""
    return "" if item in " \t\n\"'`" else item


def _squeezed_class(item: str) -> str:
    negated, inner = item[1] == "^", item[2:-1] if item[1] == "^" else item[1:-1]
    inner = re.sub(r"\\[snrtvf\"'`\\]|[\s\"'`]", "", inner)
    if (negated and not inner) or r"\S" in inner:
        return "."
    return f"[{'^' if negated else ''}{inner}]" if inner else ""


def _bounded(repeat: str, most: int) -> str:
    if repeat[:1] in ("*", "+"):
        return f"{{{'0' if repeat[0] == '*' else '1'},{most}}}{repeat[1:]}"
    if re.fullmatch(r"\{\d+,\}[?+]?", repeat):
        raise PatternError(f"{repeat} has no upper bound")
    return repeat


def _check(tree: Any, inside_repeat: bool = False) -> None:
    """Refuse what can take very long, or depends on more than the match itself."""
    for operation, argument in tree:
        if operation in literals.REPEATS:
            many = argument[1] > 1
            if many and inside_repeat:
                raise PatternError("a repetition stands inside another")
            _check(argument[2], inside_repeat or many)
        elif operation is _parser.SUBPATTERN:
            _check(argument[3], inside_repeat)
        elif operation is _parser.BRANCH:
            for branch in argument[1]:
                _check(branch, inside_repeat)
        elif operation is _parser.GROUPREF:
            raise PatternError("a reference to a group")
