"""The whole test suite on several processes: most tests wait for programs that they started.

tests/conftest.py puts the tests into groups; pytest-xdist keeps each group in one process, in order.
"""

from __future__ import annotations

SPARE = 1  # processes beyond the cores: tests wait for the engine, the scheduler and the ranks that they start


def argv(python: str, only: str, *, cores: int) -> list[str]:
    """Return pytest's command line for every test that there is.

    Args:
        python: the interpreter that has the tests' packages.
        only: pytest's -k expression; empty: no choice by name.
        cores: processors of this machine, 1 or more.
    """
    spread = ["-n", str(cores + SPARE), "--dist", "loadfile", "--no-loadscope-reorder"]
    return [python, "-m", "pytest", *spread, *(["-k", only] if only else []), "tests"]
