"""Names that a script uses and never sets, next to one that is nearly the same, which it sets and never uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rocmatrix.doctor.environment.lint_input import FileFinding

_SET = re.compile(
    r"(?:^|[\s;&|(])(?P<export>(?:export|declare\s+-\w{0,9}x\w{0,9})\s+)?"
    r"(?:(?:local|readonly|typeset|declare(?:\s+-\w{1,9})?)\s+)?(?P<name>[A-Za-z_]\w{0,99})\+?="
)
_GIVEN = re.compile(r"\b(?:read|mapfile|readarray|for|select|export|getopts|printf\s+-v)\b(?P<names>[^;&|]{0,400})")
_USED = re.compile(r"(?<![\\$])\$(?:\{[#!]?(?P<braced>[A-Za-z_]\w{0,99})(?P<then>[^}]?)|(?P<plain>[A-Za-z_]\w{0,99}))")
_PROVIDES = tuple(":-+?=")  # what follows the name in braces where it may be unset
_SHORTEST = 5  # letters of a name; among shorter ones a letter more is another word
_MOST = 400  # names of a kind; a script with more of them is no list that a person keeps


@dataclass(kw_only=True)
class _Names:
    """Names of a script with the lines where they come first. `needed` are used without a default."""

    assigned: dict[str, int] = field(default_factory=dict)
    needed: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)


def nearly_set(script: str, path: str) -> Iterator[FileFinding]:
    """Yield names that are used and never set, where one letter of a name that is set and never used makes the two one.

    Args:
        script: its text.
        path: its file, for the place of a finding.
    """
    names = _names(script.splitlines())
    known = names.assigned.keys() | names.given
    unset = {name: line for name, line in names.needed.items() if name not in known}
    idle = sorted(names.assigned.keys() - names.used - names.given)
    if len(unset) > _MOST or len(idle) > _MOST:
        return
    for name, line in unset.items():
        near = next((other for other in idle if _one_letter(name, other)), None)
        if near is not None:
            yield FileFinding(
                rule="variable-never-set", where=f"{path}:{line}", what=f"${name}", severity="warning",
                truth=f"nothing here sets it, and nothing here uses {near}, which line {names.assigned[near]} sets: "
                "one of the two names has a letter too many or another one",
                instead=f"one name in both places: {near} or {name}",
            )  # fmt: skip


def _names(rows: Sequence[str]) -> _Names:
    found = _Names()
    for number, row in enumerate(rows, 1):
        if row.lstrip().startswith("#"):
            continue
        for match in _SET.finditer(row):
            found.assigned.setdefault(match["name"], number)
            found.given |= {match["name"]} if match["export"] else set()
        for match in _GIVEN.finditer(row):
            found.given |= set(re.findall(r"[A-Za-z_]\w*", match["names"]))
        for match in _USED.finditer(row):
            name = match["braced"] or match["plain"]
            found.used.add(name)
            if (match["then"] or "") not in _PROVIDES:
                found.needed.setdefault(name, number)
    return found


def _one_letter(one: str, other: str) -> bool:
    """Return whether a letter more, another one or two that change places make two names one; digits do not count."""
    short, long = sorted((one, other), key=len)
    if len(short) < _SHORTEST or len(long) - len(short) > 1:
        return False
    at = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    if long[at].isdigit() or (at < len(short) and short[at].isdigit()):
        return False
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = long[:at] + long[at + 1 : at + 2] + long[at] + long[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or short == swapped
