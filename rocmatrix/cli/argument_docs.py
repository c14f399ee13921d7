"""Check `Args:` sections of docstrings; `python -m rocmatrix.cli.argument_docs`.

A public function or method with three or more parameters describes each of them that its annotation does not explain.
A parameter explains itself where its type is one class, as in `cell: Cell`; text, numbers, paths, tensors, callables
and containers do not. A section that names a parameter which the function lacks is an error, too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.cli.rooms import PROGRAMS
from rocmatrix.runtime.paths import ROOT

FEWEST = 3
# Types whose name does not state what a value of them is for; arrays and tensors have a shape to state.
_PLAIN = {"Any", "Callable", "Dates", "Floats", "Integers", "Module", "Path", "PurePosixPath", "Tensor", "Values", "T"}
_SECTION = re.compile(r"^Args:\n((?:(?:[ ]{4}.*)?\n?)*)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?:", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Place:
    """A function whose parameters are not described as they should be: path below the root, line from 1, the reason."""

    path: str
    line: int
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}: {self.why}"


def places(root: Path) -> list[Place]:
    """Return every function below `root` with a parameter that is not described, by path and line."""
    found: list[Place] = []
    for program in PROGRAMS:
        for file in sorted((root / program).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            for name, function, skip in _public(ast.parse(file.read_text(encoding="utf-8")).body):
                if why := _fault(function, skip=skip):
                    found.append(Place(path=path, line=function.lineno, name=name, why=why))
    return sorted(found, key=lambda place: (place.path, place.line))


def _public(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, Function, int]]:
    """Yield name, node and number of leading parameters that are not the caller's (self, cls)."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public(node.body, f"{owner}{node.name}.")
        elif isinstance(node, Function) and not node.name.startswith("_") and "override" not in _decorators(node):
            yield owner + node.name, node, int(bool(owner) and "staticmethod" not in _decorators(node))


def _decorators(node: Function) -> set[str]:
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in node.decorator_list}


def _fault(function: Function, *, skip: int) -> str:
    """Return what the docstring lacks; empty where nothing."""
    parameters = _parameters(function)[skip:]
    if len(parameters) < FEWEST:
        return ""
    described = _described(ast.get_docstring(function) or "")
    if unknown := described - {each.arg for each in parameters}:
        return f"Args names what is no parameter: {', '.join(sorted(unknown))}"
    missing = [each.arg for each in parameters if each.arg not in described and not _explains_itself(each.annotation)]
    return f"Args lacks {', '.join(missing)}" if missing else ""


def _parameters(function: Function) -> list[ast.arg]:
    given = function.args
    rest = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]


def _described(docstring: str) -> set[str]:
    section = _SECTION.search(f"{docstring}\n")
    return set(_ENTRY.findall(section[1])) if section else set()


def _explains_itself(annotation: ast.expr | None) -> bool:
    """Return whether a type is one class of a name of its own, `None` aside."""
    if isinstance(annotation, ast.BinOp):
        return _explains_itself(annotation.left) and ast.unparse(annotation.right) == "None"
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")
    return name[:1].isupper() and name not in _PLAIN


def main() -> int:
    """Print every finding in the checkout to standard error, and their number. Returns the exit status."""
    found = places(ROOT)
    print(*found, f"{len(found)} functions without a complete Args section", sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
