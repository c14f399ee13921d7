"""Mutants written by hand: those that a review found alive once, and what mutmut's operators cannot make."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.plan import copy_checkout, read
from benchmarks.mutants.trial import PLAIN, status


@dataclass(frozen=True, kw_only=True)
class Named:
    """`old` stands once in `path` and is replaced by `new`; one of `tests` has to fail."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutants() -> list[Named]:
    """Return the mutants of named.toml."""
    return [Named(name=name, **{**entry, "tests": tuple(entry["tests"])}) for name, entry in read("named.toml").items()]


def mutated(mutant: Named, code: str) -> str:
    """Return the module with the mutant in place. Raises ValueError where `old` does not stand there once."""
    if code.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.old!r} stands {code.count(mutant.old)} times in {mutant.path}")
    return code.replace(mutant.old, mutant.new)


def run_all() -> list[dict[str, Any]]:
    """Return the tests that kill each mutant, in a copy of the checkout in which they pass without it."""
    found = mutants()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        copy_checkout(folder)
        failed, output = run_tests(folder, sorted({test for mutant in found for test in mutant.tests}))
        if failed:
            sys.exit(f"the tests fail without a mutant\n{output[-4000:]}")
        return [run(mutant, folder) for mutant in found]


def run(mutant: Named, folder: Path) -> dict[str, Any]:
    """Return the tests that kill one mutant in the copy `folder`."""
    path = folder / mutant.path
    code = path.read_text(encoding="utf-8")
    path.write_text(mutated(mutant, code), encoding="utf-8")
    failed, output = run_tests(folder, mutant.tests)
    path.write_text(code, encoding="utf-8")
    killers = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return {"name": mutant.name, "module": mutant.path, "killed": failed == 1, "killers": killers}


def run_tests(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests in the copy; return pytest's exit status and output."""
    return status([sys.executable, "-m", "pytest", "-q", *PLAIN, *tests], folder, {})
