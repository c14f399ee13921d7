"""Locks: which wheel files an image installs, and the hash each must have.

The torch and triton wheels are recorded in matrix/wheels.yaml with the place their hash came from.
Everything else is resolved by pip for the image's own Python and platform, and written beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rocmatrix.errors import RocmatrixError
from rocmatrix.matrix import Matrix, Release, Wheel
from rocmatrix.matrix_file import PART_FILES

# What the trainer imports, and what torch's own metadata asks for (2.4 to 2.15).
TRAINER_REQUIREMENTS = ("numpy", "safetensors", "tqdm")
TORCH_REQUIREMENTS = ("filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "linux_x86_64")

_HEADER = "# Written by `./invokew lock`. {what}\n"
_WHEELS_ARE = "Every wheel an image may install, with its hash and where the hash was read."
_LOCKS_ARE = "Release -> Python -> the wheel files of its image, described in wheels.yaml."


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """One file that pip chose."""

    file: str
    name: str
    version: str
    sha256: str


def lock(matrix: Matrix, root: Path) -> list[str]:
    """Resolve every release that a cell uses and write the lock files.

    Returns the names of the releases locked: a release whose torch has no recorded hash stays unlocked. Raises
    RM105 when pip finds no set of versions.
    """
    wheels = {file: wheel for file, wheel in matrix.wheels.items() if wheel.index == "pytorch"}
    locks = {name: dict(pythons) for name, pythons in matrix.locks.items()}
    locked = []
    for release, python in used_releases(matrix):
        recorded = torch_wheels(matrix, release, python)
        if recorded:
            resolved = resolve(release, python)
            wheels |= {row.file: _python_wheel(row) for row in resolved}
            locks[release.name][python] = sorted([*recorded, *(row.file for row in resolved)], key=str.lower)
            locked.append(release.name)
    _write(root / PART_FILES["wheels"], _WHEELS_ARE, {file: _plain(wheels[file]) for file in sorted(wheels)})
    _write(root / PART_FILES["locks"], _LOCKS_ARE, locks)
    return list(dict.fromkeys(locked))


def used_releases(matrix: Matrix) -> list[tuple[Release, str]]:
    """Return each (release, Python) to lock, in file order: those of cells, and those with a recorded torch.

    The latter serve native environments, whose Python is not the one of an image's base.
    """
    wanted = {cell.release.name: {cell.python} for cell in matrix.cells}
    for name in wanted:
        wanted[name] |= set(matrix.locks.get(name, {}))
    releases = matrix.release_by_name
    return [(releases[name], python) for name, pythons in wanted.items() for python in sorted(pythons)]


def torch_wheels(matrix: Matrix, release: Release, python: str) -> list[str]:
    """Return the recorded torch and triton files of a release for one Python, torch first."""
    tag = f"-cp{python.replace('.', '')}-"
    recorded = matrix.locks.get(release.name, {}).get(python, [])
    return [file for file in recorded if tag in file and matrix.wheels[file].index == "pytorch"]


def resolve(release: Release, python: str) -> list[Resolved]:
    """Ask pip for the packages beside torch, without installing. Raises RM105."""
    requirements = [name + release.pins.get(name, "") for name in (*TRAINER_REQUIREMENTS, *TORCH_REQUIREMENTS)]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        argv = pip_argv(requirements, python=python, report=report, target=Path(scratch) / "target")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RocmatrixError("RM105", what=f"pip gave up on {release.name}", why=done.stderr.strip()[-800:])
        return parse_report(json.loads(report.read_text()))


def pip_argv(requirements: Iterable[str], *, python: str, report: Path, target: Path) -> list[str]:
    """Return the pip command that resolves for the image's Python and platform, not this machine's."""
    tag = f"cp{python.replace('.', '')}"
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
    argv += ["--only-binary=:all:", "--report", str(report), "--target", str(target)]
    argv += ["--python-version", python, "--implementation", "cp"]
    for abi in (tag, "abi3", "none"):
        argv += ["--abi", abi]
    for platform in PLATFORMS:
        argv += ["--platform", platform]
    return [*argv, *requirements]


def parse_report(report: dict[str, Any]) -> list[Resolved]:
    """Read pip's installation report (version 1): file name, version and sha256 of each choice."""
    return sorted((_parse_entry(entry) for entry in report["install"]), key=lambda row: row.file.lower())


def _parse_entry(entry: dict[str, Any]) -> Resolved:
    return Resolved(
        file=entry["download_info"]["url"].rsplit("/", 1)[-1],
        name=entry["metadata"]["name"],
        version=entry["metadata"]["version"],
        sha256=entry["download_info"]["archive_info"]["hashes"]["sha256"],
    )


def _python_wheel(row: Resolved) -> Wheel:
    source = "the Python package index, as pip reported it"
    return Wheel(
        name=row.name, version=row.version, sha256=row.sha256, index="python", sources=[source],
        confidence="verified in source",
    )  # fmt: skip


def _plain(wheel: Wheel) -> dict[str, Any]:
    return wheel.model_dump()


def _write(path: Path, what: str, data: Any) -> None:
    text = _HEADER.format(what=what) + yaml.safe_dump(data, sort_keys=False, width=110)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
