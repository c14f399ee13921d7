"""From a room of the tree to the unit tests that mirror it."""

from __future__ import annotations

from pathlib import Path

from rocmatrix.runtime.errors import RocmatrixError, suggestion

PROGRAMS = ("rocmatrix", "trainer")
MIRROR = "tests/unit"


def rooms(root: Path) -> list[str]:
    """Return every room that has unit tests, such as `trainer/engine`, by name; programs themselves included."""
    tests = [path for program in PROGRAMS for path in (root / MIRROR / program).rglob("test_*.py")]
    folders = {parent for path in tests for parent in path.relative_to(root / MIRROR).parents}
    return sorted(folder.as_posix() for folder in folders if folder.parts)


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
