"""The whole test suite, and large rooms of it, on several processes: most tests wait for programs that they started.

tests/conftest.py puts the tests into groups; pytest-xdist keeps each group in one process, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FEW = 15  # files of tests that one process runs sooner than several start
SPARE = 1  # processes beyond the cores: tests wait for the engine, the scheduler and the ranks that they start


def argv(python: str, only: str, *, cores: int) -> list[str]:
    """Return pytest's command line for every test that there is.

    Args:
        python: the interpreter that has the tests' packages.
        only: pytest's -k expression; empty: no choice by name.
        cores: processors of this machine, 1 or more.
    """
    return [python, "-m", "pytest", *_spread(cores), *_choice(only), "tests"]


def part_argv(python: str, chosen: Sequence[str], only: str, *, cores: int, root: Path) -> list[str]:
    """Return pytest's command line for some folders and files, in one process where they are few.

    Args:
        python: the interpreter that has the tests' packages.
        chosen: test files and folders below `root`.
        only: pytest's -k expression; empty: no choice by name.
        cores: processors of this machine, 1 or more.
        root: root of the checkout.
    """
    files = sum(len(list((root / name).rglob("test_*.py"))) for name in chosen)
    return [python, "-m", "pytest", *(_spread(cores) if files > FEW and not only else []), *_choice(only), *chosen]


def _spread(cores: int) -> list[str]:
    return ["-n", str(cores + SPARE), "--dist", "loadfile", "--no-loadscope-reorder"]


def _choice(only: str) -> list[str]:
    return ["-k", only] if only else []
