"""Check prose and names against the term list of docs/style.md; `python -m rocmatrix.cli.wording`.

Prose is what people read: docstrings, messages and help (string constants that hold a space) of both programs, and
documents written by hand. Names are those that both programs, benchmarks and tests define, local ones too; the page's
second list holds for functions, classes, parameters and attributes of the programs alone, its third for all names.
Comments and data (YAML) are not read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.cli.rooms import PROGRAMS
from rocmatrix.runtime.paths import ROOT, STYLE

TESTS, BENCHMARKS = "tests", "benchmarks"
STORED = {"says"}  # a field of signatures and of JSON that other programs read: it keeps its name
GENERATED = {"docs/errors.md", "docs/doctor.md", "docs/failures.md"}  # their sources are read instead
DOCUMENTS = ("*.md", "docs/*.md")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
_TERMS = re.compile(r"<!-- begin terms -->\n(.*?)<!-- end terms -->\n?", re.DOTALL)
_INTERFACE_TERMS = re.compile(r"<!-- begin names -->\n(.*?)<!-- end names -->\n?", re.DOTALL)
_VALUE_TERMS = re.compile(r"<!-- begin values -->\n(.*?)<!-- end values -->\n?", re.DOTALL)
_OPENINGS = re.compile(r"<!-- begin openings -->\n(.*?)<!-- end openings -->\n?", re.DOTALL)
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
    return _table(_TERMS, style, "term list")


def interface_terms(style: str) -> dict[str, str]:
    """Return each term of the style page that no interface is named by, with what to write instead.

    Raises ValueError if the page lists none.
    """
    return _table(_INTERFACE_TERMS, style, "list of names")


def name_terms(style: str) -> dict[str, str]:
    """Return each term of the style page that no name has, with what to write instead: the first list and the third.

    Raises ValueError if one of them is not on the page.
    """
    return terms(style) | _table(_VALUE_TERMS, style, "list of names of values")


def _table(pattern: re.Pattern[str], style: str, name: str) -> dict[str, str]:
    table = pattern.search(style)
    rows = [line.strip("| ").split(" | ") for line in table[1].splitlines()] if table else []
    banned = {term.casefold(): row[0] for row in rows if len(row) == 2 for term in re.findall(r"`([^`]+)`", row[1])}
    if not banned:
        raise ValueError(f"the style page has no {name}")
    return banned


def openings(style: str) -> set[str]:
    """Return the words of the style page with which no test's name begins. Raises ValueError if it lists none."""
    block = _OPENINGS.search(style)
    words = set(re.findall(r"`(\w+)`", block[1] if block else ""))
    if not words:
        raise ValueError("the style page has no list of openings")
    return words


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


def named(root: Path, banned: dict[str, str], no_subject: set[str], interface: dict[str, str]) -> list[Place]:
    """Return every faulty name that a program, a benchmark or a test defines, by path and line.

    Args:
        root: folder with both programs, benchmarks and tests.
        banned: each term that no name has, with what to write instead.
        no_subject: words with which no test's name begins.
        interface: terms that no function, class, parameter or attribute of a program has, with what to write instead.
    """
    found: list[Place] = []
    for folder in (*PROGRAMS, BENCHMARKS, TESTS):
        for file in sorted((root / folder).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            for line, name, variable in _defined(ast.parse(file.read_text(encoding="utf-8"))):
                terms = banned if variable or folder not in PROGRAMS else banned | interface
                is_test = folder == TESTS and name.startswith("test_")
                better = (_subject(name, no_subject) if is_test else None) or _better(name, terms)
                if better:
                    found.append(Place(path=path, line=line, term=name, better=better))
    return sorted(found, key=lambda place: (place.path, place.line))


def _better(name: str, banned: dict[str, str]) -> str | None:
    """Return what to write instead of a banned term in a name, None for a sound one."""
    parts = f" {' '.join(part.lower() for part in _PARTS.findall(name))} "
    term = next((term for term in banned if f" {term} " in parts and name not in STORED), None)
    return f"{banned[term]}, not {term!r}" if term else None


def _subject(name: str, no_subject: set[str]) -> str | None:
    first = name.split("_")[1]
    return f"test_<subject>_<condition>_<result>, not {first!r} first" if first in no_subject else None


def _defined(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield line and name of each definition, and whether it is a variable's; a field of a class is none."""
    fields = {field.target for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for field in node.body
              if isinstance(field, ast.AnnAssign)}  # fmt: skip
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name, False
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name, False
            case ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name, node not in fields


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
    style = STYLE.read_text(encoding="utf-8")
    banned = terms(style)
    found = [*places(ROOT, banned), *named(ROOT, name_terms(style), openings(style), interface_terms(style))]
    print(*found, f"{len(found)} banned terms and names", sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
