"""`./invokew render`, `lock` and `pins`: commands that write what is committed: rendered files, locks, pins."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from rocmatrix.cli.commands.common import known_matrix
from rocmatrix.cli.options.command import command
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

PIN_FILES = ("base", "dev", "kernels")


@dataclass(frozen=True, kw_only=True)
class Render:
    """Options of `render`."""

    check: bool = option(
        "change nothing; fail when a file differs from what the matrix renders", default=False, short="c"
    )


@command(
    Render, about="Write the generated files: images/, compose/, documents and tables, from matrix.yaml and matrix/."
)
def render(args: Render) -> None:
    """Write every generated file, or compare them with what is committed."""
    from rocmatrix.cli import generated

    matrix = known_matrix()
    if args.check:
        say(f"{generated.check(matrix, ROOT)} generated files agree with matrix.yaml")
        return
    touched = generated.write(matrix, ROOT)
    say("\n".join([f"{len(touched)} files written or removed", *touched]))


@dataclass(frozen=True, kw_only=True)
class Lock:
    """Options of `lock`."""

    cell: str = option("one cell (default: every release that cells use)", metavar="CELL")
    all: bool = option("every release with every Python it was built for", default=False)
    upgrade: bool = option("take the newest versions; recorded ones are kept otherwise", default=False)


@command(Lock, about="Lock the wheels of cells or releases: versions and hashes, written to matrix/.")
def lock(args: Lock) -> None:
    """Resolve the wheels of releases again and render what depends on them. Raises RM109 when some stay unlocked."""
    from rocmatrix.cli import generated
    from rocmatrix.images import lock as locking

    matrix = known_matrix()
    targets = locking.cell_targets(matrix, args.cell) if args.cell else None
    targets = locking.all_targets(matrix) if args.all else targets
    result = locking.lock(matrix, ROOT, targets=targets, upgrade=args.upgrade)
    generated.write(known_matrix(), ROOT)
    for target in result.done:
        say(f"locked {target.summary}")
    if result.failed:
        raise RocmatrixError("RM109", what=result.failures)


@dataclass(frozen=True, kw_only=True)
class Pins:
    """`pins` has no option."""


@command(Pins, about="Lock the requirements of this project: requirements/*.in to requirements/*.txt, with hashes.")
def pins(_: Pins) -> None:
    """Compile requirements/*.in into hash-locked requirements/*.txt."""
    from rocmatrix.images import native_env
    from rocmatrix.images.native import plain_wheels

    native_env.install_requirements(ROOT, "dev")
    for name in PIN_FILES:
        argv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        argv += ["--python-version", "3.11", "--custom-compile-command", "./invokew pins"]
        argv += ["--excludes", "excludes.txt", f"{name}.in", "--output-file", f"{name}.txt"]
        if subprocess.run(argv, cwd=ROOT / "requirements", check=False).returncode:
            raise RocmatrixError("RM105", what=f"requirements/{name}.in could not be resolved")
    plain_wheels.write(ROOT, next(cell.release.torch for cell in known_matrix().cells if cell.release.rocm is None))
