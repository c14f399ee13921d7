"""Commands for people who change rocmatrix: its tests and its checks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rocmatrix.cli import rooms, suite
from rocmatrix.cli.commands import files
from rocmatrix.cli.commands.common import known_matrix
from rocmatrix.cli.options.command import command
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.images.native_env import Native

# import-linter has no module that `python -m` would start; without a cache it leaves no folder in the checkout.
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


@dataclass(frozen=True, kw_only=True)
class Test:
    """Options of `test`."""

    paths: str = option("test files or folders (default: all)", short="p", metavar="PATH,...")
    only: str = option("run tests whose name matches, as pytest -k does", short="o", metavar="EXPRESSION")
    room: str = option(
        "run the unit tests of one room or module, such as trainer/engine or rocmatrix/matrix/gfx",
        short="r",
        metavar="ROOM",
    )
    mutants: bool = option(
        "change the modules that decide, one mutant at a time, and run their tests on each (takes hours)",
        default=False,
        short="m",
    )
    module: str = option(
        "with --mutants: one module of benchmarks/mutants/modules.toml, such as rocmatrix/matrix/rule.py",
        short="d",
        metavar="PATH",
    )


@command(Test, about="Run the tests: all that this machine can run, with a count of those left out, and why.")
def test(args: Test) -> None:
    """Run every test this machine can run, or a room's unit tests; the last lines count skipped tests by reason."""
    if args.mutants or args.module:
        _test_mutants(args)
    chosen, only = chosen_tests(args.paths, args.room, ROOT), args.only
    runner = environment_of_tests()
    environment = {**os.environ, "TESTCONTAINERS_RYUK_DISABLED": "true"}
    cores = len(os.sched_getaffinity(0))
    if chosen:
        argv = suite.part_argv(runner.python, chosen, only, cores=cores, root=ROOT)
    else:
        argv = suite.argv(runner.python, only, cores=cores)
    sys.exit(subprocess.run(argv, cwd=ROOT, env=environment, check=False).returncode)


def environment_of_tests() -> Native:
    """Install what tests and linters need into .venv; return the runner of its Python. Raises RM402 and others."""
    from rocmatrix.images import native_env

    runner = native_env.prepare(known_matrix(), ROOT, cell=None)  # refuses another environment before writing to it
    native_env.install_requirements(ROOT, "dev")
    return runner


def _test_mutants(args: Test) -> NoReturn:
    """Run the mutants of every module that decides, or of one. Raises RM404 where other options stand with it."""
    if not args.mutants or args.paths or args.only or args.room:
        raise RocmatrixError("RM404", what="--mutants takes --module alone, and --module belongs to --mutants")
    runner = environment_of_tests()
    argv = [runner.python, "-m", "benchmarks.mutants", *(["--module", args.module] if args.module else [])]
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


@dataclass(frozen=True, kw_only=True)
class Lint:
    """`lint` has no option."""


@command(
    Lint,
    about="Run all checks: linter, formatter, types, import contracts, wording, Args sections, mirrored tests, drift "
    "of generated files.",
)
def lint(_: Lint) -> None:
    """Run linter, formatter, types, room order, wording, Args sections, mirrored tests and the drift check."""
    environment_of_tests()
    for argv in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        _step(" ".join(argv), ["-m", *argv])
    _step("lint-imports", ["-c", LINT_IMPORTS])
    _step("wording", ["-m", "rocmatrix.cli.wording"])
    _step("argument docs", ["-m", "rocmatrix.cli.argument_docs"])
    _step("mirrored tests", ["-m", "rocmatrix.cli.rooms"])
    files.render(files.Render(check=True))


def _step(name: str, argv: list[str]) -> None:
    say(f"$ {name}")
    if subprocess.run([sys.executable, *argv], cwd=ROOT, check=False).returncode:
        sys.exit(1)
