"""The whole test suite in two processes at once: most tests wait for programs that they started."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rocmatrix.runtime.console import say

TRAINER = ("tests/unit/trainer", "tests/gpu")  # about half of the time; no test of them needs a container engine
NO_TEST = 5  # pytest's status where it found none


def lanes(python: str, only: str) -> tuple[list[str], list[str]]:
    """Return pytest's two command lines: the trainer's tests, and every other test that there is."""
    pytest = [python, "-m", "pytest", *(["-k", only] if only else [])]
    return [*pytest, *TRAINER], [*pytest, "tests", *(f"--ignore={folder}" for folder in TRAINER)]


def run(python: str, only: str, *, root: Path, environment: Mapping[str, str]) -> int:
    """Run both lanes, the second on this terminal; print the first's output after it. Return the worse status."""
    behind, shown = lanes(python, only)
    with tempfile.TemporaryFile() as output:
        first = subprocess.Popen(behind, cwd=root, env=dict(environment), stdout=output, stderr=subprocess.STDOUT)
        try:
            second = subprocess.run(shown, cwd=root, env=dict(environment), check=False).returncode
            status = worse(first.wait(), second)
        finally:
            first.kill()
            first.wait()
        output.seek(0)
        say(f"$ pytest {' '.join(TRAINER)}, which ran at the same time:")
        sys.stdout.write(output.read().decode(errors="replace"))
        sys.stdout.flush()
    return status


def worse(first: int, second: int) -> int:
    """Return the status of two runs together: a failure of either; no test at all only where neither had one."""
    failed = [status for status in (first, second) if status not in (0, NO_TEST)]
    return failed[0] if failed else min(first, second)
