"""Commands that write what is committed: rendered files, locks, pins."""

from __future__ import annotations

import subprocess
import sys

from rocmatrix.cli.commands.common import known_matrix
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

PIN_FILES = ("base", "dev", "kernels")


@edge
def render(*, check: bool) -> None:
    """Write every generated file, or compare them with what is committed."""
    from rocmatrix.cli import generated

    matrix = known_matrix()
    if check:
        say(f"{generated.check(matrix, ROOT)} generated files agree with matrix.yaml")
        return
    touched = generated.write(matrix, ROOT)
    say("\n".join([f"{len(touched)} files written or removed", *touched]))


@edge
def lock(*, cell: str | None, everything: bool, upgrade: bool) -> None:
    """Resolve the wheels of releases again and render what depends on them. Raises RM109 when some stay unlocked.

    Args:
        cell: name of a cell; None for all that cells use.
        everything: lock every release of the matrix, with a cell or not.
        upgrade: take newer versions than the recorded ones.
    """
    from rocmatrix.cli import generated
    from rocmatrix.images import lock as locking

    matrix = known_matrix()
    targets = locking.cell_targets(matrix, cell) if cell else None
    result = locking.lock(matrix, ROOT, targets=locking.all_targets(matrix) if everything else targets, upgrade=upgrade)
    generated.write(known_matrix(), ROOT)
    for target in result.done:
        say(f"locked {target.words}")
    if result.failed:
        raise RocmatrixError("RM109", what=result.failures)


@edge
def pins() -> None:
    """Compile requirements/*.in into hash-locked requirements/*.txt."""
    from rocmatrix.images import native_env as native

    native.install_requirements(ROOT, "dev")
    for name in PIN_FILES:
        argv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        argv += ["--python-version", "3.11", "--custom-compile-command", "./invokew pins"]
        argv += ["--excludes", "excludes.txt", f"{name}.in", "--output-file", f"{name}.txt"]
        if subprocess.run(argv, cwd=ROOT / "requirements", check=False).returncode:
            raise RocmatrixError("RM105", what=f"requirements/{name}.in could not be resolved")
