"""Variables that a script appends to a file which later shells read, such as ~/.bashrc."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.lint_input import Assignment, Command

_APPENDED = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w+\s+)?(?P<quote>['\"]?)\s*(?:export\s+)?(?P<name>[A-Z_][A-Z0-9_]*)="
    r"(?P<value>[^'\">|;&]*?)\s*(?:\\n)?(?P=quote)\s*"
    r"(?:>>?|\|\s*(?:sudo\s+)?tee\s+(?:-a\s+)?)\s*[\"']?\S*"
    r"(?:\.(?:bashrc|zshrc|bash_profile|profile)|/etc/environment|/etc/profile\S*|/environment\.d/\S+)"
)


def appended(command: Command) -> Iterator[Assignment]:
    """Yield the variables that a line writes into such a file, at that line.

    Args:
        command: a line of a script.
    """
    for found in _APPENDED.finditer(command.text):
        yield Assignment(name=found["name"], value=found["value"], where=command.where)
