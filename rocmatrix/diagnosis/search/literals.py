"""Fixed texts that every match of a pattern holds one of: what a log is searched for before any pattern is tried.

Neighbouring texts are joined, alternatives included: `(?:HIP|ROCm) error` gives `hiperror` and `rocmerror`, which are
rare, and not `error`, which is not. Of several parts of a pattern the one whose texts are rarest is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

_parser: Any = re._parser  # type: ignore[attr-defined]  # the standard library's own parser of patterns
REPEATS = (_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT)
SHORTEST = 5  # characters that a fixed text has at least
MOST_JOINED = 64  # texts that neighbouring alternatives are joined to: all of them are searched for
# words of many healthy lines: a rarer part of the pattern is looked for first
COMMON = frozenset((
    "amdgpu", "failed", "found", "notfound", "missing", "kernel", "kernels", "available",
    "container", "detected", "device", "devices", "loading", "torch", "python", "version", "couldnot",
    "couldnotfind", "cannotfind", "unabletofind", "notsupported", "nosuchfile", "invalid", "nosuchfileordirectory",
    "connectionrefused", "oserror", "exitcode",
))  # fmt: skip
# how the name of an exception ends: some logs hold one in each line, healthy ones seldom, so it counts as a word of
# medium length, however long the name is: rarer than the short words of a message, not than its long ones
EXCEPTIONS, EXCEPTION_LENGTH = ("error:", "error,", "exception:", "exception,"), 8
# words of nearly every line of some logs: what stands beside them is looked for wherever it can be
MOST_COMMON = frozenset(("error", "errors", "warning"))
_Texts = frozenset[str]


def required(tree: Any) -> _Texts | None:
    """Return texts, in small letters, of which a match of a parsed pattern holds at least one; None without any.

    The choice whose shortest text is longest is taken. Words that stand everywhere in logs count as shorter, as every
    place that holds one is searched.
    """
    return max(choices(tree), key=lambda choice: min(map(_rarity, choice)), default=None)


def choices(tree: Any) -> list[_Texts]:
    """Return every choice of texts, in small letters, of which a match of a parsed pattern holds one."""
    return [choice for choice in _choices(tree) if choice and "" not in choice]


def _rarity(literal: str) -> float:
    """Return how well a literal separates lines: its length, and for a common word less than any that is allowed."""
    if literal in MOST_COMMON:
        return SHORTEST - 1
    if literal in COMMON:
        return SHORTEST - 0.5
    return min(len(literal), EXCEPTION_LENGTH) if literal.endswith(EXCEPTIONS) else len(literal)


def _choices(tree: Any) -> Iterator[_Texts]:
    """Yield the texts of each run of neighbours that are fixed, and of each part that is not fixed itself."""
    run: _Texts = frozenset({""})
    for operation, argument in tree:
        texts = _texts(operation, argument)
        joined = _joined(run, texts) if texts else None
        if joined:
            run = joined
            continue
        yield _shortest(run)
        run = texts or frozenset({""})
        if not texts:
            yield from filter(None, (_inside(operation, argument),))
    yield _shortest(run)


def _joined(left: _Texts, right: _Texts) -> _Texts | None:
    """Return all texts of a left and a right part, or None where they are too many."""
    if len(left) * len(right) > max(MOST_JOINED, len(left), len(right)):
        return None
    return frozenset(before + after for before in left for after in right)


def _texts(operation: Any, argument: Any) -> _Texts | None:
    """Return all texts that an item of a pattern stands for, or None where they are too many to list."""
    if operation is _parser.LITERAL:
        return frozenset({chr(argument).lower()})
    if operation is _parser.IN:
        plain = all(kind is _parser.LITERAL for kind, _ in argument)
        return frozenset(chr(code).lower() for _, code in argument) if plain else None
    if operation is _parser.SUBPATTERN:
        return _sequence(argument[3])
    if operation is _parser.BRANCH:
        return _union(_sequence(branch) for branch in argument[1])
    if operation in REPEATS and argument[1] == 1:
        return _union((_sequence(argument[2]), frozenset({""}) if argument[0] == 0 else frozenset()))
    return None


def _sequence(tree: Any) -> _Texts | None:
    whole: _Texts | None = frozenset({""})
    for operation, argument in tree:
        texts = _texts(operation, argument)
        whole = _joined(whole, texts) if whole and texts else None
        if whole is None:
            return None
    return whole


def _union(parts: Iterable[_Texts | None]) -> _Texts | None:
    found = list(parts)
    return None if None in found else frozenset().union(*(part for part in found if part))


def _inside(operation: Any, argument: Any) -> _Texts | None:
    """Return what a part that is not fixed requires: a group, what is repeated at least once, or each alternative."""
    if operation is _parser.SUBPATTERN:
        return required(argument[3])
    if operation in REPEATS and argument[0] > 0:
        return required(argument[2])
    if operation is _parser.BRANCH:
        return _union(required(branch) for branch in argument[1])
    return None


def _shortest(texts: _Texts) -> _Texts:
    """Return the texts without those that hold another of them."""
    kept: list[str] = []
    for text in sorted(texts, key=len):
        if not any(one in text for one in kept):
            kept.append(text)
    return frozenset(kept)
