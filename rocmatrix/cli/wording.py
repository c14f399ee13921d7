"""Check prose against the term list of docs/style.md; `python -m rocmatrix.cli.wording`.

Prose is what people read: docstrings, messages and help (string constants that hold a space) of both programs, and
documents written by hand. Comments, names, tests and data (YAML) are not read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.runtime.paths import ROOT, STYLE

PROGRAMS = ("rocmatrix", "trainer")
GENERATED = {"docs/errors.md", "docs/doctor.md", "docs/failures.md"}  # their sources are read instead
DOCUMENTS = ("*.md", "docs/*.md")
_TERMS = re.compile(r"<!-- begin terms -->\n(.*?)<!-- end terms -->\n?", re.DOTALL)
_NOT_PROSE = re.compile(r"```.*?```|<!-- begin (\w+) -->.*?<!-- end \1 -->", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Place:
    """One banned term in a file: path below the root, line from 1, the term and what to write instead."""

    path: str
    line: int
    term: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.term!r}; write: {self.better}"


def terms(style: str) -> dict[str, str]:
    """Return each banned term of the style page with what to write instead. Raises ValueError if it lists none."""
    table = _TERMS.search(style)
    rows = [line.strip("| ").split(" | ") for line in table[1].splitlines()] if table else []
    banned = {term.casefold(): row[0] for row in rows if len(row) == 2 for term in re.findall(r"`([^`]+)`", row[1])}
    if not banned:
        raise ValueError("the style page has no term list")
    return banned


def places(root: Path, banned: dict[str, str]) -> list[Place]:
    """Return every banned term in the prose below `root`, by path and line. The longest of several terms counts."""
    longest = sorted(banned, key=len, reverse=True)
    spaced = "|".join(r"\s+".join(map(re.escape, term.split())) for term in longest)  # a term may run over a line's end
    pattern = re.compile(rf"\b({spaced})\b", re.IGNORECASE)
    found: list[Place] = []
    for path, line, text in _prose(root):
        for hit in pattern.finditer(text):
            term = " ".join(hit[1].casefold().split())
            at = line + text.count("\n", 0, hit.start())
            found.append(Place(path=path, line=at, term=term, better=banned[term]))
    return sorted(found, key=lambda place: (place.path, place.line))


def _prose(root: Path) -> Iterator[tuple[str, int, str]]:
    """Yield path, first line and text of each piece of prose."""
    for program in PROGRAMS:
        for file in sorted((root / program).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            yield from ((name, line, text) for line, text in _constants(file.read_text(encoding="utf-8")))
    for file in sorted(path for pattern in DOCUMENTS for path in root.glob(pattern)):
        name = file.relative_to(root).as_posix()
        if name not in GENERATED:
            text = _TERMS.sub(_blank, file.read_text(encoding="utf-8"))
            yield name, 1, _NOT_PROSE.sub(_blank, text)


def _constants(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def _blank(cut: re.Match[str]) -> str:
    return "\n" * cut[0].count("\n")  # lines keep their numbers


def main() -> int:
    """Print every finding in the checkout to standard error, and their number. Returns the exit status."""
    found = places(ROOT, terms(STYLE.read_text(encoding="utf-8")))
    print(*found, f"{len(found)} banned terms", sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
