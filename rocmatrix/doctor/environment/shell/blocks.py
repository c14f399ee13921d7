"""Commands within other texts: code blocks of a page in Markdown, and recipes of a Makefile or justfile.

Each is returned as a text of as many lines as the file, in which all else is empty, so that line numbers hold.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<margin>[ >]{0,12})(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w.+-]*)[^`]*$")
# first lines of blocks that name no language, and the language that they are taken for
_UNNAMED = ("", "text", "txt", "plaintext", "none")
_TAKEN_FOR = (
    (
        "bash",
        re.compile(
            r"(?:\$ |#!|(?:sudo|export|docker|podman|pip3?|uv|python3?|git|cd|apt|apt-get|conda|curl|wget|srun)\s)"
        ),
    ),
    ("yaml", re.compile(r"(?:services|version|apiVersion):")),
    ("dockerfile", re.compile(r"FROM \S")),
)
_PROMPT = re.compile(r"^\s*(?:\([\w.-]{1,40}\)\s*)?(?:[\w.-]{1,40}@[\w.-]{1,60}[:~\w/ .-]{0,80})?[$%]\s+(?=\S)")
_QUOTES = "\"'"
_SET_BY_MAKE = re.compile(r"^(?:export|override)\s+(?P<name>[A-Za-z_]\w*)\s*[:?+]?=\s*(?P<value>\S.*)$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A code block: its language in small letters ("" where nothing shows it), its text."""

    language: str
    text: str


def fenced(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page in Markdown that have an end, in their order.

    Args:
        page: text of the page.
    """
    rows = page.splitlines()
    first, opened = 0, None
    for number, row in enumerate(rows):
        match = FENCE.match(row)
        if opened is None:
            first, opened = number + 1, match
        elif match and not match["language"] and match["fence"].startswith(opened["fence"]):
            margin = re.compile(rf" {{0,{len(opened['margin'])}}}")  # of a list, which the block is within
            body = typed(
                [line.lstrip("> ") if line.startswith(">") else margin.sub("", line, count=1)
                 for line in rows[first:number]]
            )  # fmt: skip
            language = language_of(opened["language"].lower(), body)
            yield Block(language=language, text="\n" * first + "\n".join(body) + "\n")
            opened = None


def language_of(named: str, rows: list[str]) -> str:
    """Return the language that a block names, or that its first line looks like."""
    first = next((row.strip() for row in rows if row.strip() and not row.startswith("# ")), "")
    guesses = (language for language, form in _TAKEN_FOR if form.match(first))
    return next(guesses, "") if named in _UNNAMED else named


def typed(rows: list[str]) -> list[str]:
    """Return what was typed: where a line begins with a prompt, lines without one are what a program printed."""
    if not any(_PROMPT.match(row) for row in rows):
        return rows
    typed, goes_on = [], False
    for row in rows:
        begins = bool(_PROMPT.match(row))
        typed.append(_PROMPT.sub("", row) if begins else row if goes_on else "")
        goes_on = (begins or goes_on) and row.rstrip().endswith("\\")
    return typed


def recipes(text: str) -> str:
    """Return the commands of a Makefile's or justfile's recipes, and what it exports, as a script.

    Args:
        text: of the file.
    """
    return "\n".join(_of_make(row) for row in text.splitlines()) + "\n"


def _of_make(row: str) -> str:
    exported = _SET_BY_MAKE.match(row)
    if exported:
        value = exported["value"].strip()
        return (
            f"export {exported['name']}={value if value[0] in _QUOTES else shlex.quote(value)}"  # make knows no quotes
        )
    if not row[:1].isspace():
        return ""
    return re.sub(r"\$\(([A-Za-z_]\w*)\)", r"${\1}", row.lstrip().lstrip("@-+ ")).replace("$$", "$")
