"""Mistakes in how a requirement is written: the shell or pip reads another thing than what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.lint_input import Command, FileFinding

_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")
_REDIRECTED = re.compile(r"\bpip[\d.]* install\b[^&|;\n]*?\s(?P<word>[A-Za-z][\w.,\[\]-]*[<>]=?\d[\w.*]*)")
_LOCAL_RANGE = re.compile(
    r"(?<![\w-])[A-Za-z][\w.\[\]-]{0,80}(?:[<>=!~]=?[\w.+*]{1,40},){0,4}"
    r"(?P<sign>>=|<=|~=|>|<)\d[\w.]{0,40}\+\w[\w.]{0,60}"
)
_OPTION = re.compile(r"^[A-Za-z][^#\n]*?\s;?\s*(?P<option>--(?:extra-)?index-url|--find-links|-i|-f)[ =]")


def of_command(command: Command) -> Iterator[FileFinding]:
    """Yield requirements of a shell command that the shell takes for redirections, and local versions in ranges."""
    plain = _QUOTED.sub("''", command.text)
    if (word := _REDIRECTED.search(plain)) is not None:
        yield FileFinding(
            rule="requirement-redirected", where=command.where, what=word["word"], severity="error",
            truth="without quotes the shell takes > and < for redirections: pip gets the name alone",
            instead=f"'{word['word']}' in quotes",
        )  # fmt: skip
    if "install" in command.text and (found := _LOCAL_RANGE.search(command.text)) is not None:
        yield FileFinding(
            rule="local-version-in-range", where=command.where, what=found[0].strip(" \"'"), severity="error",
            truth=f"a local version such as +rocm6.4 may follow == and != only (PEP 440); pip refuses {found['sign']}",
            instead="== with the whole version, or a range without the local part and --index-url",
        )  # fmt: skip


def of_requirement(row: str, where: str) -> Iterator[FileFinding]:
    """Yield an option of pip that stands on the line of a requirement.

    Args:
        row: the line as it is written.
        where: its file and line.
    """
    found = _OPTION.search(row)
    if found is not None:
        yield FileFinding(
            rule="option-in-requirement", where=where, what=row.strip(), severity="error",
            truth=f"{found['option']} counts for a whole file, on a line of its own; pip refuses it behind a package",
            instead=f"{found['option']} on a line of its own",
        )  # fmt: skip
