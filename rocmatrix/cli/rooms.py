"""Rooms and modules of the tree, and the unit tests that mirror them; `python -m rocmatrix.cli.rooms` compares both.

Every module has a file of tests of its own name in the mirrored place, which imports the module or a name that the
module defines: tests that reach it through a command, a re-export or a patched name are tests of something else. Exempt
by rule are modules without a function that does anything: constants, dataclasses, type aliases, error tables,
interfaces. What else lacks tests of its own is listed in `tests/unit/without_tests.txt`, which only shrinks.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.runtime.paths import ROOT

PROGRAMS = ("rocmatrix", "trainer")
MIRROR = "tests/unit"
LISTED = f"{MIRROR}/without_tests.txt"
_NO_MODULES = {"__init__.py", "__main__.py"}
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def rooms(root: Path) -> list[str]:
    """Return every room that has unit tests, such as `trainer/engine`, by name; programs themselves included."""
    tests = [path for program in PROGRAMS for path in (root / MIRROR / program).rglob("test_*.py")]
    folders = {parent for path in tests for parent in path.relative_to(root / MIRROR).parents}
    return sorted(folder.as_posix() for folder in folders if folder.parts)


def described(program: str, root: Path) -> dict[str, str]:
    """Return the rooms of a program by name, each with the first paragraph of its docstring.

    Args:
        program: folder of the program, `rocmatrix` or `trainer`; it is no room itself.
        root: the checkout.
    """
    inits = sorted((root / program).glob("*/**/__init__.py"))
    docs = {file.parent: ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "" for file in inits}
    return {
        folder.relative_to(root / program).as_posix(): " ".join(doc.partition("\n\n")[0].split())
        for folder, doc in docs.items()
    }


def tests_of(name: str, root: Path) -> str:
    """Return the folder or file of the tests of a room, such as `trainer/engine`, or of one of its modules.

    Dots may stand for slashes. Raises RM404 for a name that no test mirrors.
    """
    path = name.strip("/").removesuffix(".py").replace(".", "/")
    folder, _, module = path.rpartition("/")
    known = rooms(root)
    if path in known:
        return f"{MIRROR}/{path}"
    if folder in known and (root / (found := f"{MIRROR}/{folder}/test_{module}.py")).is_file():
        return found
    raise RocmatrixError("RM404", what=f"--room {name}: no room or module with unit tests", why=suggestion(path, known))


def modules(root: Path) -> dict[str, bool]:
    """Return every module's path below `root`, and whether it needs tests of its own."""
    paths = [path for program in PROGRAMS for path in (root / program).rglob("*.py") if path.name not in _NO_MODULES]
    return {path.relative_to(root).as_posix(): _does_anything(path) for path in sorted(paths)}


def without_tests(root: Path) -> set[str]:
    """Return the modules that need tests of their own and have none in the mirrored place that import them."""
    return {path for path, needed in modules(root).items() if needed and not _tested(root, Path(path))}


def faults(root: Path) -> list[str]:
    """Return what differs between the modules without tests and those that are listed, a line each."""
    return _differences(root, without_tests(root))


def _differences(root: Path, found: set[str]) -> list[str]:
    file = root / LISTED
    listed = set(file.read_text(encoding="utf-8").split()) if file.is_file() else set()
    new = [f"{path}: no tests in {MIRROR}/{_mirrored(Path(path))} import it" for path in sorted(found - listed)]
    return [*new, *(f"{LISTED}: {path} needs no entry any more: remove it" for path in sorted(listed - found))]


def _mirrored(module: Path) -> Path:
    return module.with_name(f"test_{module.name}")


def _tested(root: Path, module: Path) -> bool:
    """Return whether the mirrored file exists, defines a test, and imports the module or a name that it defines."""
    file = root / MIRROR / _mirrored(module)
    tree = ast.parse(file.read_text(encoding="utf-8") if file.is_file() else "")
    tests = (node.name for node in _run(tree) if isinstance(node, _FUNCTION))
    return any(name.startswith("test_") for name in tests) and _imports(tree, root / module, module)


def _imports(tree: ast.Module, source: Path, module: Path) -> bool:
    """Return whether a file imports a module, or a name that the module defines; imports for types do not count.

    Args:
        tree: the file.
        source: path of the module.
        module: its path below the root, such as `trainer/engine/loop.py`.
    """
    folder, name = ".".join(module.parent.parts), module.stem
    taken: set[str] = set()
    for node in _run(tree):
        match node:
            case ast.Import(names=names) if any(alias.name == f"{folder}.{name}" for alias in names):
                return True
            case ast.ImportFrom(module=origin, level=0, names=names) if origin == folder:
                if any(alias.name == name for alias in names):
                    return True
            case ast.ImportFrom(module=origin, level=0, names=names) if origin == f"{folder}.{name}":
                taken |= {alias.name for alias in names}
    return bool(taken and taken & _defined(ast.parse(source.read_text(encoding="utf-8"))))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a file, without blocks that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _run(ast.Module(body=node.orelse, type_ignores=[]))
        else:
            yield node
            yield from _run(node)


def _defined(tree: ast.Module) -> set[str]:
    """Return the names that a module defines at its top level, imported ones left out."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _FUNCTION | ast.ClassDef):
            found.add(node.name)
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            found |= {
                each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
            found |= {each.name for each in ast.walk(node) if isinstance(each, _FUNCTION | ast.ClassDef)}
    return found


def _does_anything(module: Path) -> bool:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return any(isinstance(node, _FUNCTION) and not _trivial(node) for node in ast.walk(tree))


def _trivial(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function does nothing but pass, raise one error, or return a constant or an attribute."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    match body:
        case [] | [ast.Pass() | ast.Raise()] | [ast.Expr(value=ast.Constant())]:
            return True
        case [ast.Return(value=None | ast.Constant() | ast.Name() | ast.Attribute())]:
            return True
    return False


def main() -> int:
    """Print every finding in the checkout to standard error, and the counts. Returns the exit status."""
    needed, found = modules(ROOT), without_tests(ROOT)
    lines = _differences(ROOT, found)
    counts = f"{len(needed)} modules, {list(needed.values()).count(False)} exempt by rule"
    print(*lines, f"{counts}, {len(found)} without tests of their own", sep="\n", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
