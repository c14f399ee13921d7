"""Commands for people who change rocmatrix: its tests and its checks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rocmatrix.cli import rooms, suite
from rocmatrix.cli.commands import files
from rocmatrix.cli.commands.common import known_matrix
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

# import-linter has no module that `python -m` would start; without a cache it leaves no folder in the checkout.
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


@edge
def test(*, paths: str, only: str, room: str = "") -> None:
    """Run every test this machine can run, or a room's unit tests; the last lines count skipped tests by reason.

    Args:
        paths: test files or folders below the root, with spaces between; empty for all.
        only: expression for pytest's -k; empty selects every test.
        room: room or module such as trainer/engine, in place of `paths`; empty for none.
    """
    chosen = chosen_tests(paths, room, ROOT)
    from rocmatrix.images import native_env as native

    runner = native.prepare(known_matrix(), ROOT, cell=None)  # refuses another environment before writing to it
    native.install_requirements(ROOT, "dev")
    environment = {**os.environ, "TESTCONTAINERS_RYUK_DISABLED": "true"}
    if chosen:
        argv = [runner.python, "-m", "pytest", *chosen, *(["-k", only] if only else [])]
    else:
        argv = suite.argv(runner.python, only, cores=len(os.sched_getaffinity(0)))
    sys.exit(subprocess.run(argv, cwd=ROOT, env=environment, check=False).returncode)


@edge
def test_mutants(*, module: str, others: Sequence[str] = ()) -> None:
    """Run the mutants of every module that decides, or of one. Raises RM404 where other options stand with it."""
    if any(others):
        raise RocmatrixError("RM404", what="--mutants takes --module alone, and --module belongs to --mutants")
    from rocmatrix.images import native_env as native

    runner = native.prepare(known_matrix(), ROOT, cell=None)
    native.install_requirements(ROOT, "dev")
    argv = [runner.python, "-m", "benchmarks.mutants", *(["--module", module] if module else [])]
    sys.exit(subprocess.run(argv, cwd=ROOT, check=False).returncode)


def chosen_tests(paths: str, room: str, root: Path) -> list[str]:
    """Return what pytest is given: `paths`, or the unit tests of `room`. Raises RM404 for both and for no such room.

    Args:
        paths: test files or folders, with spaces between; empty for none.
        room: room or module such as trainer/engine; empty for none.
        root: root of the checkout, below which tests/unit mirrors the rooms.
    """
    if paths and room:
        raise RocmatrixError("RM404", what="--paths and --room exclude each other")
    return [rooms.tests_of(room, root)] if room else paths.split()


@edge
def lint() -> None:
    """Run linter, formatter check, type checker, room order, wording, Args sections and the drift check."""
    from rocmatrix.images import native_env as native

    native.prepare(known_matrix(), ROOT, cell=None)
    native.install_requirements(ROOT, "dev")
    for argv in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        _step(" ".join(argv), ["-m", *argv])
    _step("lint-imports", ["-c", LINT_IMPORTS])
    _step("wording", ["-m", "rocmatrix.cli.wording"])
    _step("argument docs", ["-m", "rocmatrix.cli.argument_docs"])
    files.render(check=True)


def _step(name: str, argv: list[str]) -> None:
    say(f"$ {name}")
    if subprocess.run([sys.executable, *argv], cwd=ROOT, check=False).returncode:
        sys.exit(1)
