"""Advice that fits the command it is given for: clauses that name an option which the command lacks are left out."""

from __future__ import annotations

import re
from collections.abc import Collection

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Between alternatives. A bare comma or " or " may also stand within one: "drop or repair such rows".
_BETWEEN = re.compile(r"(; or |; else |; |, or |, and )")
_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z`-])")
_QUOTED = re.compile(r"`([^`]*)`")


def fitted(advice: str, flags: Collection[str]) -> str:
    """Return the advice without what the command cannot follow; empty where nothing is left.

    An option in a quoted command, such as `train --help=all`, belongs to that command.

    Args:
        advice: sentences; alternatives within one are parted by commas or semicolons.
        flags: options of the command, with their dashes.
    """
    sentences = (_sentence(each, flags) for each in _SENTENCE.split(advice))
    return " ".join(filter(None, sentences))


def _sentence(sentence: str, flags: Collection[str]) -> str:
    if not _foreign(sentence, flags):
        return sentence
    first, *more = _BETWEEN.split(sentence.removesuffix("."))
    clauses = [("", first), *zip(more[::2], more[1::2], strict=True)]
    kept = [(before, clause) for before, clause in clauses if not _foreign(clause, flags)]
    text = "".join((before if place else "") + clause for place, (before, clause) in enumerate(kept))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _foreign(text: str, flags: Collection[str]) -> bool:
    """Return whether a text names an option that is none of `flags`, outside a quoted command."""
    own = _QUOTED.sub(lambda quoted: quoted[1] if quoted[1].startswith("-") else "", text)
    return any(flag not in flags for flag in FLAG.findall(own))
