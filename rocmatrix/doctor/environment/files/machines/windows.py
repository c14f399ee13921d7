"""Scripts of Windows as subjects: variables that batch files and PowerShell set, and what they install with pip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import installed, read_text
from rocmatrix.doctor.environment.lint_input import Assignment, Command, FileFinding, Subject

_COMMENT = re.compile(r"^\s*@?(?:rem\b|::|#)", re.IGNORECASE)
_VARIABLE = r"(?P<name>[A-Za-z_]\w*)"
# set "A=b", set A=b, setx A b; `if` and parentheses may stand before them
_BATCH = re.compile(
    rf"^\s*(?:if\s[^()]{{1,200}}\(?\s*)?[@(]*\s*set(?P<x>x)?\s+(?P<quote>\"?){_VARIABLE}\"?(?(x)\s+|=)(?P<value>.*)$",
    re.IGNORECASE,
)
_POWERSHELL = re.compile(rf"^\s*\$env:{_VARIABLE}\s*=\s*(?P<value>.*?)\s*;?\s*$", re.IGNORECASE)
_FOR_GOOD = re.compile(
    rf"SetEnvironmentVariable\(\s*[\"']{_VARIABLE}[\"']\s*,\s*[\"'](?P<value>[^\"'\n]*)[\"']", re.IGNORECASE
)
_OF_CALLER = re.compile(r"%(\w+)%")
_PIP = re.compile(
    r"^\s*[@&]*\s*(?:call\s+)?(?P<text>(?:\S+\s+-m\s+|uv\s+)?\S*pip[\d.]*(?:\.exe)?\s+install\b.*)", re.IGNORECASE
)
_LINUX_INDEX = re.compile(r"download\.pytorch\.org/whl/(?:nightly/|test/)?rocm[\d.]+")
_LINUX_WHEEL = re.compile(r"\S*linux_x86_64\.whl|repo\.radeon\.com/rocm/manylinux\S*")


def of_windows(path: Path) -> tuple[Subject, ...]:
    """Return what a batch file or a script of PowerShell sets and installs. Raises RM310 where it cannot be read."""
    rows = tuple(_lines(read_text(path)))
    variables = tuple(row for number, text in rows if (row := _assigned(text, f"{path}:{number}")) is not None)
    commands = tuple(
        Command(text=_plain(match["text"]), where=f"{path}:{number}")
        for number, text in rows
        if (match := _PIP.match(text)) is not None
    )
    notes = (*(note for row in variables for note in _of_hsa(row)), *(one for row in commands for one in _wheels(row)))
    pairs = tuple(pair for command in commands for pair in installed(command.text, command.where))
    return (Subject(name=str(path), variables=variables, commands=commands, pairs=pairs, notes=notes),)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, each with what a caret or a backtick at its end continues."""
    held, begin = "", 0
    for number, row in enumerate(text.splitlines(), 1):
        if not held and _COMMENT.match(row):
            continue
        begin = begin or number
        held += row
        if re.search(r"(?<=\s)[\^`]\s*$", row):
            held = held.rstrip()[:-1]
            continue
        yield begin, held
        held, begin = "", 0


def _assigned(text: str, where: str) -> Assignment | None:
    """Return the variable that a line sets; the quotes around a whole `set "A=b"` are none of its value."""
    batch = _BATCH.match(text)
    if batch is not None:
        value = batch["value"]
        if batch["quote"] or batch["x"]:
            value = value.strip().partition(" >")[0].strip().strip('"')
        return Assignment(name=batch["name"].upper(), value=_OF_CALLER.sub(r"${\1}", value.rstrip(")")), where=where)
    match = _POWERSHELL.match(text) or _FOR_GOOD.search(text)
    if match is None:
        return None
    return Assignment(name=match["name"].upper(), value=match["value"].strip("\"'"), where=where)


def _plain(text: str) -> str:
    """Return a command as a shell would have it: a path has no backslashes, and nothing is left of redirections."""
    return _OF_CALLER.sub(r"${\1}", text.partition(" >")[0].replace("\\", "/"))


def _of_hsa(row: Assignment) -> Iterator[FileFinding]:
    if row.name.startswith("HSA_OVERRIDE_GFX_VERSION"):
        yield FileFinding(
            rule="override-on-windows", where=row.where, what=f"{row.name}={row.value}", severity="warning",
            truth="HIP of Windows does not go through HSA, so the variable is not read there (ROCm/TheRock#1719)",
            instead="wheels or libraries that are built for the card's own architecture",
        )  # fmt: skip


def _wheels(command: Command) -> Iterator[FileFinding]:
    match = _LINUX_INDEX.search(command.text) or _LINUX_WHEEL.search(command.text)
    if match is not None:
        yield FileFinding(
            rule="linux-wheels-on-windows", where=command.where, what=match[0], severity="error",
            truth="the wheels there are for Linux alone: pip finds none that fits Windows",
            instead="AMD's wheels for Windows (https://repo.radeon.com/rocm/windows/), or a distribution in WSL2",
        )  # fmt: skip
