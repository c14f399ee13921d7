"""The native environment: the torch that fits this machine, installed into .venv from the matrix's lock.

The same lock serves images and the native environment, so both train with the same wheels.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.images.native import plain_wheels
from rocmatrix.images.native.lock_parts import parts_of
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.kernel_lock import HeldError, held

# With less than this left, an installation that failed has failed for want of space.
FULL_BYTES = 16 * 2**20
STAMP = ".rocmatrix-native"
INSTALLING, USING = ".rocmatrix-installing", ".rocmatrix-using"  # files that kernel locks are taken on
_USED = ExitStack()  # this process' share of the wheels; the system lets go of it however the process ends
IMPORTED = ("numpy", "polars", "pyyaml", "safetensors", "tqdm", "zstandard")  # by the trainer, next to torch
_STATE_PACKAGES = """
import importlib.metadata, json, platform, sys
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
MOST_PIPS = 4  # side by side: more of them wait for one disk and one index
_BYTE_CODE = "PIP_NO_COMPILE"
PIP_INSTALL = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes")


@dataclass(frozen=True, kw_only=True)
class Native:
    """An interpreter that can run the trainer, the cell whose wheels it has, and why these."""

    python: str
    cell: Cell | None
    why: str


def prepare(matrix: Matrix, root: Path, *, cell: Cell | None, install_wheels: bool = True) -> Native:
    """Return an interpreter with torch, installing the locked wheels into .venv where needed and wanted.

    `cell` is what the request and the cards resolved to. Raises RM403 where no build fits, and what
    fetching raises (RM103 to RM105, RM205, RM206).

    Args:
        root: folder of the checkout, whose .venv is used.
        install_wheels: install what is missing; otherwise take .venv as it is.
    """
    if Path(sys.prefix).resolve() != (root / ".venv").resolve():
        return _active_environment()
    chosen, why = choose(matrix, cell, python=f"{sys.version_info.major}.{sys.version_info.minor}")
    if install_wheels:
        why += install_or_plain(chosen, root)
    return Native(python=sys.executable, cell=chosen, why=why)


def install_or_plain(cell: Cell, root: Path) -> str:
    """Install the cell's wheels, or the package index's torch where the CPU build's cannot be had; return what to add.

    Raises RM104 where there is no other, RM114 where it is not wanted, and what `install` raises.

    Args:
        root: folder of the checkout.
    """
    other = plain_wheels.plain(cell, root)
    taken = f"; torch is the package index's own ({plain_wheels.LOCK})"
    if other and _is_installed(other.cell):
        install(other.cell, root, plain_wheels.folder(root, cell))
        return taken
    try:
        install(cell, root)
    except RocmatrixError as error:
        if other is None or not _lacks_torch(error, cell):
            raise
        plain_wheels.agree(other, error)
        install(other.cell, root, plain_wheels.folder(root, cell))
        return taken
    return ""


def _lacks_torch(error: RocmatrixError, cell: Cell) -> bool:
    """Return whether a fetch failed for torch itself: the package index's torch needs all the other wheels, too."""
    files = [file for file, wheel in cell.wheels if wheel.name == "torch"]
    return error.code == "RM104" and any(error.what.startswith(file) for file in files)


def _is_installed(cell: Cell) -> bool:
    stamp = Path(sys.prefix) / STAMP
    return stamp.is_file() and stamp.read_text() == _digest(cell)


def _digest(cell: Cell) -> str:
    from rocmatrix.images import render

    return hashlib.sha256(render.requirements_lock(cell).encode()).hexdigest()


def installed() -> Native:
    """Return the first Python outside .venv that has torch and what the trainer imports. Raises RM655 where none has.

    Candidates are ROCMATRIX_PYTHON, else python3 and python3.14 to python3.11 on the PATH, and the one that made .venv.
    """
    lacking = []
    for python in _pythons():
        found = _packages_of(python)
        if found.get("torch") and not (missing := [name for name in IMPORTED if not found.get(name)]):
            why = f"torch {found['torch']}, installed for {python} ({found['python']}); --use-installed-torch"
            return Native(python=python, cell=None, why=why)
        lacking.append(f"{python} lacks {', '.join(missing) if found.get('torch') else 'torch'}")
    advice = f"Install with that Python's pip: {' '.join(IMPORTED)}. Or leave --use-installed-torch out."
    raise RocmatrixError("RM655", what="; ".join(lacking) or "no Python was found", next=advice)


def _pythons() -> list[str]:
    """Return the Pythons of this machine outside the environments of a checkout, each once."""
    named = os.environ.get("ROCMATRIX_PYTHON")
    names = [named] if named else ["python3", *(f"python3.{minor}" for minor in (14, 13, 12, 11))]
    own = Path(sys.prefix).resolve() / "bin"
    elsewhere = os.pathsep.join(
        each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).resolve() != own
    )
    made_by = [] if named else [getattr(sys, "_base_executable", sys.executable)]
    found = [shutil.which(name, path=elsewhere) for name in names] + made_by
    return list(dict.fromkeys(path for path in found if path))


def _packages_of(python: str) -> dict[str, str]:
    """Return the versions of torch and of what the trainer imports, as a Python states them; {} for no answer."""
    try:
        argv = [python, "-P", "-c", _STATE_PACKAGES, *IMPORTED, "torch"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        stated = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return stated if isinstance(stated, dict) else {}


def choose(matrix: Matrix, cell: Cell | None, *, python: str) -> tuple[Cell, str]:
    """Pick the locked wheels for this Python: the cell's own, or the CPU build with the reason.

    Args:
        python: version of this interpreter, such as "3.12".
    """
    if cell is not None and (own := matrix.for_python(cell, python)) is not None:
        return own, f"the wheels of {cell.name} for Python {python}"
    cpu = next((c for c in matrix.cells if c.release.rocm is None and matrix.for_python(c, python)), None)
    own = matrix.for_python(cpu, python) if cpu else None
    if own is None:
        what = f"no torch wheel is locked for Python {python}"
        known = ", ".join(_locked_pythons(matrix))
        raise RocmatrixError("RM403", what=what, next=f"use one of Python {known}, or --in container")
    missing = f"; {cell.name} has no wheels locked for Python {python}" if cell else ""
    return own, f"the CPU build{missing}"


def _locked_pythons(matrix: Matrix) -> list[str]:
    cpu = [cell for cell in matrix.cells if cell.release.rocm is None]
    pythons = {python for cell in cpu for python in matrix.locks.get(cell.release.name, {})}
    return sorted(python for python in pythons if any(matrix.for_python(cell, python) for cell in cpu))


def install(cell: Cell, root: Path, folder: Path | None = None) -> None:
    """Install the cell's wheels into this environment, unless they are there already, and hold them for this process.

    Two calls do not install at once, and wheels that a running job loads from are not replaced: RM670.

    Args:
        root: folder of the checkout.
        folder: wheelhouse; None for the one that all cells of the lock share.
    """
    stamp = Path(sys.prefix) / STAMP
    if not _is_installed(cell):
        _require_writable(f"the wheels of {cell.release.name}")
    with held(Path(sys.prefix) / INSTALLING, waiting="another call installs wheels into .venv"):
        if not _is_installed(cell):
            _replace(cell, root, folder)
            stamp.write_text(_digest(cell))
        _USED.enter_context(held(Path(sys.prefix) / USING, shared=True, waiting="another call replaces wheels"))


def _require_writable(missing: str) -> None:
    """Raise RM402 where this user may not write the environment, as in another user's checkout.

    Args:
        missing: what would have to be installed.
    """
    if not os.access(sys.prefix, os.W_OK):
        what = f"{missing} are not installed, and this user may not write there"
        advice = "Let its owner run the same command once, or make a checkout of your own."
        raise RocmatrixError("RM402", what=what, where=sys.prefix, next=advice)


def _replace(cell: Cell, root: Path, folder: Path | None) -> None:
    from rocmatrix.images import render, wheelhouse

    print(f"Installing the wheels of {cell.release.name} for Python {cell.python} ...", file=sys.stderr)
    folder = wheelhouse.fetch(cell, folder or wheelhouse.default_folder(root, cell))
    requirements = Path(sys.prefix) / "native.lock"
    _USED.close()  # what this process held of earlier wheels
    try:
        with held(Path(sys.prefix) / USING):
            (Path(sys.prefix) / STAMP).unlink(missing_ok=True)  # first: killed half-way, it must not count as complete
            requirements.write_text(render.requirements_lock(cell), encoding="utf-8")
            run_pip(pip_argv(folder, requirements), environment=wheelhouse_alone(os.environ))
    except HeldError as error:
        what = f"the wheels of {cell.release.name} would replace those that a running job loads from"
        raise RocmatrixError("RM670", what=what, where=sys.prefix, why=f"held by {error}") from None


def pip_argv(folder: Path, requirements: Path) -> list[str]:
    """Return the command that installs a lock from a wheelhouse, with no index to fall back on."""
    return [*PIP_INSTALL, "--no-index", "--no-deps", f"--find-links={folder}", f"--requirement={requirements}"]


def wheelhouse_alone(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for an installation from a wheelhouse: pip's settings of this machine are left out.

    A folder of wheels that a pip.conf names is a source even under --no-index, and its torch 2.13.0+cpu is preferred
    to a locked torch 2.13.0, whose hash it does not have. Whether byte code is written stays as set.

    Args:
        environment: variables of this process.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith("PIP_") or name == _BYTE_CODE}
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


def install_requirements(root: Path, name: str) -> None:
    """Install requirements/<name>.txt into this environment once per content of that file."""
    lock = root / "requirements" / f"{name}.txt"
    stamp = Path(sys.prefix) / f".rocmatrix-{name}"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
        return
    _require_writable(f"the packages of {lock.relative_to(root)}")
    with held(Path(sys.prefix) / INSTALLING, waiting="another call installs into .venv"):
        print(f"Installing {lock.relative_to(root)} ...", file=sys.stderr)
        content = lock.read_bytes()
        stamp.unlink(missing_ok=True)
        _install_side_by_side(content.decode(), min(MOST_PIPS, len(os.sched_getaffinity(0))))
        stamp.write_bytes(content)


def _install_side_by_side(lock: str, count: int) -> None:
    """Install a lock by as many pips; it is complete, so --no-deps: else pip asks for what excludes.txt leaves out."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor  # both are slow to import, and few calls install anything

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(count) as pips:
        places = [Path(folder, f"{number}.txt") for number in range(count)]
        for place, text in zip(places, parts_of(lock, count), strict=False):
            place.write_text(text, encoding="utf-8")
        argvs = [[*PIP_INSTALL, "--no-deps", f"--requirement={place}"] for place in places if place.exists()]
        list(pips.map(run_pip, argvs))


def run_pip(argv: list[str], *, environment: Mapping[str, str] = os.environ) -> None:
    """Run pip. Raises RM402 with its last lines when it fails.

    Args:
        environment: variables of pip's process.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0 and shutil.disk_usage(sys.prefix).free < FULL_BYTES:
        raise RocmatrixError("RM205", what="pip ended with no space left", where=sys.prefix)
    if done.returncode != 0:
        raise RocmatrixError("RM402", what="pip could not install the locked wheels", why=done.stderr.strip()[-800:])


def _active_environment() -> Native:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise RocmatrixError(
            "RM403",
            what="the active environment has no torch",
            where=sys.prefix,
            next="use ./invokew, which makes its own environment, or install torch here",
        ) from None
    return Native(python=sys.executable, cell=None, why=f"the active environment's torch {version}")
