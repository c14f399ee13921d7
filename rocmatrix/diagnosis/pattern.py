"""Patterns that white space, quotes and letter case cannot hide a match from, and that cannot run away.

A log is wrapped at any column, indented, quoted and escaped. So a text is *squeezed* before it is searched: white
space, quotes, backslashes and NULs go, letters become small. A pattern is written as an ordinary regular expression
and squeezed alike. Every repetition is bounded and none stands inside another, so a search takes a bounded number
of steps for each place where it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rocmatrix.diagnosis.search import literals

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


def squeeze(text: bytes) -> bytes:
    """Return a text as patterns see it."""
    return text.translate(_SMALL, DROPPED)


class PatternError(ValueError):
    """A pattern that cannot be used, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A pattern for squeezed text. `whole_start` and `whole_end` ask for the edge of a word in the text itself."""

    text: str
    squeezed: str
    whole_start: bool
    whole_end: bool

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """The pattern for squeezed bytes."""
        return re.compile(self.squeezed.encode(), re.IGNORECASE)

    @cached_property
    def width(self) -> int:
        """The most bytes of squeezed text that a match spans."""
        return int(_parser.parse(self.squeezed).getwidth()[1])

    @cached_property
    def ahead(self) -> int:
        """How many bytes after a match decide on it: what must not follow, such as the name of a success."""
        return AHEAD if "(?!" in self.squeezed or "(?=" in self.squeezed else 0

    @cached_property
    def literals(self) -> frozenset[bytes]:
        """Texts of which every match holds at least one, small and squeezed."""
        found = literals.required(_parser.parse(self.squeezed)) or frozenset()
        return frozenset(literal.encode() for literal in found)

    @cached_property
    def weight(self) -> int:
        """How much fixed text a match holds at least: what makes one pattern more specific than another."""
        return int(_parser.parse(self.squeezed).getwidth()[0])


def parse(text: str) -> Pattern:
    """Check a pattern and squeeze it. Raises PatternError with what is wrong with it."""
    try:
        re.compile(text)
        body = text.removeprefix("(?i)")
        whole_start, whole_end = body.startswith(r"\b"), body.endswith(r"\b")
        body = body.removeprefix(r"\b").removesuffix(r"\b")
        found = Pattern(
            text=text, squeezed="".join(_squeezed_tokens(body)), whole_start=whole_start, whole_end=whole_end
        )
        _check(_parser.parse(found.squeezed))
    except re.error as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    if found.width > WIDEST:
        raise PatternError(f"a match may span {found.width} bytes; at most {WIDEST} are allowed")
    if not found.literals or min(map(len, found.literals)) < literals.SHORTEST:
        raise PatternError(f"every match has to hold a fixed text of at least {literals.SHORTEST} characters")
    return found


def checked_groups(text: str) -> None:
    """Check an expression with named groups that is searched in one line that is shown. Raises PatternError."""
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    if not compiled.groupindex:
        raise PatternError("it names no group")
    _check(_parser.parse(text))


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
