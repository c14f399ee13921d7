"""One module's mutants: made and run by mutmut, survivors again in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.plan import ROOT, Module, copy_checkout
from benchmarks.mutants.undecorated import undecorated

# A mutant that does not end, or takes the process down, was noticed. One that is kept was killed before.
KILLED = ("killed", "timeout", "crashed", "kept")
PLAIN = ("-p", "no:cacheprovider", "--hypothesis-seed=0")  # the same examples for every mutant
# A failure is counted and not shown: to write it down takes many times what the test does.
TERSE = ("--tb=no", "--assert=plain")
LIMIT = 900  # seconds of a process of its own, many times what the slowest list of tests takes
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "MKL_NUM_THREADS": "1", "ROCMATRIX_REHEARSAL": "whole"}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of a module's mutants: each as a dictionary of name, status and change."""

    module: Module
    source: str
    mutants: list[dict[str, Any]]
    seconds: float


def run(module: Module, *, fresh: bool = False, only: dict[str, Any] | None = None) -> Trial:
    """Mutate a module in a copy of the checkout; `fresh` tries survivors again, each in a process of its own.

    `only` are the changes and the functions to try alone; the others were killed before and are not tried again.

    Ends the program where the tests fail without a mutant.
    """
    began, source = time.monotonic(), module.source
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        copy_checkout(folder)
        prepare(module, folder)
        mutants = first_pass(module, folder, only=only)
        for mutant in mutants:
            if fresh and mutant["status"] not in KILLED:
                mutant["status"] = alone(module, folder / "mutants", mutant["name"])
    return Trial(module=module, source=source, mutants=mutants, seconds=round(time.monotonic() - began, 1))


def prepare(module: Module, folder: Path) -> None:
    """Write mutmut's configuration, and the module with its decorators as assignments."""
    path = folder / module.path
    path.write_text(undecorated(path.read_text(encoding="utf-8")), encoding="utf-8")
    program = module.path.split("/")[0]
    rest = sorted(entry.name for entry in folder.iterdir() if entry.name not in (program, "pyproject.toml"))
    arguments = [*PLAIN, *TERSE, *(["-k", f"not ({module.skip})"] if module.skip else [])]
    settings = {
        "source_paths": [program],
        "only_mutate": [module.path],
        "also_copy": rest,
        "pytest_add_cli_args_test_selection": list(module.tests),
        "pytest_add_cli_args": arguments,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    with (folder / "pyproject.toml").open("a") as stream:
        stream.write("\n".join(["", "[tool.mutmut]", *lines, ""]))


def first_pass(module: Module, folder: Path, *, only: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Let mutmut make the mutants and run them, each in a fork of one process."""
    result, chosen = folder / "outcomes.json", folder / "chosen.json"
    chosen.write_text(json.dumps(only))
    argv = [sys.executable, str(ROOT / "benchmarks" / "mutants" / "inside.py"), module.path, str(result)]
    argv += [str(chosen)] if only is not None else []
    done = subprocess.run(argv, cwd=folder, env={**os.environ, **QUIET}, capture_output=True, text=True, check=False)
    if not result.exists():
        sys.exit(f"{module.path}: no mutants were run\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    found: list[dict[str, Any]] = json.loads(result.read_text())
    return found


def alone(module: Module, folder: Path, mutant: str) -> str:
    """Run all tests of the module in a process of their own with one mutant in place."""
    argv = [sys.executable, "-m", "pytest", "-x", "-q", *PLAIN, *module.tests]
    argv += ["-k", f"not ({module.skip})"] if module.skip else []
    return "killed" if status(argv, folder, {"MUTANT_UNDER_TEST": mutant})[0] else "survived"


def status(argv: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Return the exit status and the output; a run past the limit has failed."""
    environment = {**os.environ, **QUIET, **variables, "PYTHONPATH": str(folder)}
    try:
        done = subprocess.run(
            argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return 124, f"not ended after {LIMIT} s"
    return done.returncode, done.stdout
