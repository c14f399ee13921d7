"""Lines of a Dockerfile as the engine joins them: instructions that go on, heredocs, words that are no instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocmatrix.doctor.environment.lint_input import FileFinding

_WORDS = (
    "add arg cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal"
    " user volume workdir"
)
_KNOWN = frozenset(_WORDS.split())
_DIRECTIVE = re.compile(r"#\s*(?P<name>syntax|escape|check)\s*=\s*(?P<value>\S+)", re.IGNORECASE)
_HEREDOC = re.compile(r"(?<![<\w])\d?<<(?P<tabs>-?)[\"']?(?P<ending>[A-Za-z_]\w*)[\"']?")
_WITH_HEREDOC = ("run", "copy", "add")
_TEMPLATE = re.compile(r"\{\{|\{%|^\s*(?:<%|@@|#(?:if|include|define)\b)", re.MULTILINE)
_COMMAND = re.compile(r"[a-z][\w./-]*$|&&$|\|\|?$|;$")  # a shell command in small letters, or what joins two


@dataclass(frozen=True, kw_only=True)
class _Line:
    """An instruction: its first word in small letters, and the number of its first row."""

    word: str
    number: int


def without_gaps(text: str) -> str:
    """Return a Dockerfile of as many lines, in which no empty line and no comment stands within an instruction."""
    rows = text.splitlines()
    mark = _escape(rows)
    inside = False
    for at, row in enumerate(rows):
        gap = not row.strip() or row.lstrip().startswith("#")
        if inside and gap:
            rows[at] = mark
        else:
            inside = not gap and row.rstrip().endswith(mark)
    return "\n".join(rows) + "\n"


def unknown(text: str, path: str) -> Iterator[FileFinding]:
    """Yield the first line that begins with a command of the shell where an instruction has to stand.

    Args:
        text: of the Dockerfile.
        path: its file, for the place of a finding.
    """
    rows = text.splitlines()
    if _TEMPLATE.search(text) or _syntax(rows):
        return
    line = next((one for one in _lines(rows, _escape(rows)) if one.word not in _KNOWN), None)
    if line is not None and _COMMAND.match(rows[line.number].split()[0]):
        yield FileFinding(
            rule="instruction-unknown", where=f"{path}:{line.number + 1}", severity="error",
            what=" ".join(rows[line.number].split())[:80],
            truth="a line of a Dockerfile begins with an instruction, and the engine refuses the file here: the "
            "instruction above is at its end, as its last line has no backslash",
            instead="&& \\ at the end of the line above, or RUN in front of this one",
        )  # fmt: skip


def _directives(rows: list[str]) -> dict[str, str]:
    """Return what the comments at the top of a Dockerfile state to the engine."""
    found: dict[str, str] = {}
    for row in rows:
        match = _DIRECTIVE.match(row)
        if match is None:
            break
        found[match["name"].lower()] = match["value"]
    return found


def _escape(rows: list[str]) -> str:
    return "`" if _directives(rows).get("escape") == "`" else "\\"


def _syntax(rows: list[str]) -> bool:
    """Return whether another front end than Docker's own reads the file: it may have further instructions."""
    name = _directives(rows).get("syntax", "docker/dockerfile")
    return not re.match(r"(?:docker\.io/)?docker/dockerfile(?:-upstream)?(?:[:@]|$)", name)


def _lines(rows: list[str], mark: str) -> Iterator[_Line]:
    at = 0
    while at < len(rows):
        row = rows[at]
        if not row.strip() or row.lstrip().startswith("#"):
            at += 1
            continue
        first, word, whole = at, row.split()[0].lower(), ""
        while at < len(rows):
            gap = not rows[at].strip() or rows[at].lstrip().startswith("#")
            whole += "" if gap else rows[at] + "\n"
            goes_on = rows[at].rstrip().endswith(mark) or (gap and at > first)
            at += 1
            if not goes_on:
                break
        endings = [(one["ending"], one["tabs"]) for one in _HEREDOC.finditer(whole)] if word in _WITH_HEREDOC else []
        at = _behind(rows, at, endings)
        yield _Line(word=word, number=first)


def _behind(rows: list[str], at: int, endings: list[tuple[str, str]]) -> int:
    """Return where the heredocs of an instruction end: the file's end where one of them does not."""
    for ending, tabs in endings:
        while at < len(rows) and (rows[at].lstrip("\t") if tabs else rows[at]) != ending:
            at += 1
        if at == len(rows):
            return at
        at += 1
    return at
