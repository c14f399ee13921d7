"""Lists of targets without quotes: a shell ends a command at their semicolon, and ARG its value at a space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rocmatrix.doctor.environment.lint_input import Command, FileFinding

_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", re.DOTALL)
_TARGET = r"gfx\d{2,3}[0-9a-f](?:[:+-][\w+-]+)?"
# as it is written: what a variable stands for is not divided again
_LIST = re.compile(rf"(?:^|\s)(?P<name>(?:-D)?\w+(?::\w+)?)=(?P<first>{_TARGET})(?:;|[ \t]+){_TARGET}(?![\w-])")


def of_command(command: Command) -> Iterator[FileFinding]:
    """Yield a list of targets in a command that the shell divides."""
    rows = (row for row in command.rows or (command.text,) if not row.lstrip().startswith("#"))
    found = _LIST.search(_QUOTED.sub("''", "\n".join(rows)))
    if found is not None:
        yield _finding(
            command.where, found[0].strip(), f"without quotes {found['name']} is {found['first']} alone: the shell "
            "takes what follows for another command or another word",
        )  # fmt: skip


def of_argument(words: Sequence[str], where: str) -> Iterator[FileFinding]:
    """Yield a list of targets in an ARG of a Dockerfile, each of which declares an argument of its own.

    Args:
        words: what follows ARG.
        where: its file and line.
    """
    first = next((at for at, word in enumerate(words) if at and re.fullmatch(_TARGET, word.rstrip(";,"))), None)
    if first is not None:
        name, equals, value = words[first - 1].partition("=")
        why = f"without quotes {name} is {value or 'empty'}" if equals else f"without = {name} has no default"
        what = f"ARG {' '.join(words[: first + 1])}"
        yield _finding(where, what, f"{why}: each word is an argument of its own")


def _finding(where: str, what: str, truth: str) -> FileFinding:
    return FileFinding(
        rule="list-without-quotes", where=where, what=what, severity="error", truth=truth,
        instead="NAME=value, with a list in quotes",
    )  # fmt: skip
