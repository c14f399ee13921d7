"""Choice among several Pythons of a machine: the first whose torch wheels can be fetched.

    python -P -m rocmatrix.images.native.python_choice PYTHON...

prints the path of another than the first where that one's wheels can be had and the first one's cannot; `invokew` asks
this once, while it makes .venv. Nothing is downloaded but the description of a wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

from rocmatrix.runtime.console import say
from rocmatrix.runtime.paths import ROOT

Available = Callable[[str, bool], bool]
_VERSION = "import json, sys; print(json.dumps('.'.join(map(str, sys.version_info[:2]))))"


def better(pythons: Sequence[tuple[str, str]], available: Available) -> tuple[str, str] | None:
    """Return path and version of a Python whose torch can be had where the first one's cannot; None to stay.

    PyTorch's own index has the wheels of each Python or is out of reach, so it is asked about the first alone.

    Args:
        pythons: path and version of each, the preferred first.
        available: whether torch for a version can be had, from PyTorch's own index, too, where True.
    """
    if available(pythons[0][1], True):
        return None
    return next((each for each in pythons[1:] if available(each[1], False)), None)


def available_here() -> Available:
    """Return what asks pip whether the CPU build can be had."""
    from rocmatrix.images.pip_report import PATIENCE, platform_options
    from rocmatrix.matrix.loading.load import load

    matrix = load(ROOT)
    cpu = next(cell for cell in matrix.cells if cell.release.rocm is None)

    def available(python: str, own_index: bool) -> bool:
        if matrix.for_python(cpu, python) is None:
            return False
        index = ["--extra-index-url", cpu.release.index] if own_index else []
        with tempfile.TemporaryDirectory() as scratch:
            argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"]
            argv += ["--disable-pip-version-check", "--only-binary=:all:", "--target", scratch, *PATIENCE]
            argv += [*platform_options(python), *index, cpu.release.requirement(None)]
            return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    return available


def version_of(python: str) -> str:
    """Return a Python's version, such as 3.12; empty where it gives none.

    Args:
        python: path of the interpreter.
    """
    try:
        done = subprocess.run([python, "-I", "-c", _VERSION], capture_output=True, text=True, check=False, timeout=30)
        return str(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""


def main(paths: Sequence[str]) -> int:
    """Print the path of a better Python, or nothing."""
    by_version: dict[str, str] = {}
    for path in paths:
        by_version.setdefault(version_of(path), path)  # the first of a version, at its own place
    pythons = [(path, version) for version, path in by_version.items() if version]
    if len(pythons) > 1 and (found := better(pythons, available_here())):
        first = pythons[0]
        say(
            f"The CPU build of torch cannot be fetched for Python {first[1]} ({first[0]}), but for Python {found[1]}: "
            f"{found[0]} is taken. ROCMATRIX_PYTHON={first[0]} keeps the other."
        )
        print(found[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
