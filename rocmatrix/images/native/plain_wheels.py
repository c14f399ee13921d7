"""Plain torch with its CUDA libraries from the Python package index, for a machine that reaches nothing else.

Files, hashes and sizes are in requirements/plain-torch.yaml, which `./invokew pins` writes. The other wheels are those
of the CPU cell's lock, so that both differ in torch alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name, parse_wheel_filename

from rocmatrix.images.pip_report import PLATFORMS
from rocmatrix.matrix.matrix import Cell, Wheel
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError

LOCK = Path("requirements") / "plain-torch.yaml"
ANSWER = "ROCMATRIX_PLAIN_WHEELS"  # yes or no, in place of the question on a terminal
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORM = "x86_64-manylinux_2_28"
# Installed bytes by those of the wheels, rounded up from 1.85: 2.7 GB of wheels gave a .venv of 5.0 GB on 2026-11-23,
# by a full run of `./invokew` in debootstrapped Debian trixie, Python 3.13. pip keeps neither wheels nor a cache.
UNPACKED = 2.0
_OURS = ("torch", "triton", "cuda-", "nvidia-")  # the packages that the CPU build does without, and torch
_PLATFORMS = {*PLATFORMS, "any", "manylinux2010_x86_64", "manylinux1_x86_64"}  # pip takes the last two by itself
_HEADER = "# Written by `./invokew pins`: torch from the Python package index. File -> sha256 and bytes.\n"


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The CPU cell with the package index's torch: `cell` for the wheelhouse and pip, `size` in bytes to fetch."""

    cell: Cell
    size: int

    @property
    def words(self) -> str:
        """What is fetched, and how large it is."""
        return (
            f"torch {self.cell.release.torch} of the Python package index for Python {self.cell.python}, with the CUDA "
            f"libraries that it asks for: {self.size / 1e9:.1f} GB to fetch, about {self.size * UNPACKED / 1e9:.0f} GB "
            "more installed"
        )


def plain(cell: Cell, root: Path) -> Plain | None:
    """Return the CPU `cell` with the package index's torch in place of PyTorch's own, None where none is recorded.

    Args:
        root: folder of the checkout.
    """
    known = yaml.safe_load((root / LOCK).read_text(encoding="utf-8")) if (root / LOCK).is_file() else {}
    files = {file: row for file, row in (known.get(cell.release.torch) or {}).items() if _suits(file, cell.python)}
    if cell.release.rocm is not None or not any(file.startswith("torch-") for file in files):
        return None
    own = [(file, wheel) for file, wheel in cell.wheels if wheel.name != "torch"]
    added = [(file, _wheel(file, row["sha256"])) for file, row in files.items()]
    wheels = tuple(sorted((*own, *added), key=lambda row: row[0].lower()))
    return Plain(cell=cell.model_copy(update={"wheels": wheels}), size=sum(row["bytes"] for row in files.values()))


def _suits(file: str, python: str) -> bool:
    """Return whether a wheel's file is for this Python's ABI, or for each Python, and runs on every base."""
    *_, tags = parse_wheel_filename(file)
    own = f"cp{python.replace('.', '')}"  # cp313t is the ABI without the interpreter's lock
    abis = {(own, own), (own, "abi3"), (own, "none"), ("py3", "none")}
    return any((tag.interpreter, tag.abi) in abis and tag.platform in _PLATFORMS for tag in tags)


def _wheel(file: str, sha256: str) -> Wheel:
    name, version, *_ = parse_wheel_filename(file)
    return Wheel.model_validate(
        {"name": name, "version": str(version), "sha256": sha256, "index": "python", "sources": [str(LOCK)],
         "confidence": "verified in source"}
    )  # fmt: skip


def folder(root: Path, cell: Cell) -> Path:
    """Return the folder of the wheels: not that of the small build, whose hashes are others.

    Args:
        root: folder of the checkout.
    """
    return root / ".rocmatrix" / "wheelhouse" / f"{cell.lock_name}-plain-py{cell.python}"


def agree(found: Plain, refused: RocmatrixError, environment: Mapping[str, str] = os.environ) -> None:
    """State what is taken, why and how large it is, and ask on a terminal. Raises RM114 where the answer is no.

    Without a terminal it is taken, unless ROCMATRIX_PLAIN_WHEELS=no.

    Args:
        refused: why the small build cannot be had.
        environment: variables of this process.
    """
    say(f"The small CPU build of torch cannot be fetched ({refused.what}).\nIn its place: {found.words}.")
    answer = environment.get(ANSWER, "").strip().lower()
    if not answer and sys.stdin.isatty() and sys.stderr.isatty():
        print(f"Fetch {found.size / 1e9:.1f} GB? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip().lower() or "no"
    if answer not in ("", "y", "yes", "1"):
        given = f"{ANSWER}={environment[ANSWER]}" if environment.get(ANSWER) else "answered with no"
        raise RocmatrixError("RM114", what=found.words, why=f"{given}; the small build: {refused.why}")


def write(root: Path, torch: str) -> None:
    """Resolve torch for each Python with uv, from the index this machine is configured with, and write the lock.

    Args:
        root: folder of the checkout.
        torch: version, such as "2.13.0".

    Raises:
        RocmatrixError: RM105 where the index has no such torch.
    """
    found = {file: row for python in PYTHONS for file, row in _resolved(torch, python)}
    text = yaml.safe_dump({torch: {file: found[file] for file in sorted(found)}}, sort_keys=False, width=200)
    (root / LOCK).write_text(_HEADER + text, encoding="utf-8")


def _resolved(torch: str, python: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as scratch:
        requirements, lock = Path(scratch) / "torch.in", Path(scratch) / "pylock.toml"
        requirements.write_text(f"torch=={torch}\n", encoding="utf-8")
        argv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--format", "pylock.toml", "--python-version"]
        argv += [python, "--python-platform", PLATFORM, str(requirements), "--output-file", str(lock)]
        if subprocess.run(argv, check=False).returncode:
            raise RocmatrixError("RM105", what=f"torch {torch} for Python {python}", where=str(LOCK))
        packages = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    for package in packages:
        if canonicalize_name(package["name"]).startswith(_OURS):
            yield _chosen(package["wheels"], python)


def _chosen(wheels: list[dict[str, Any]], python: str) -> tuple[str, dict[str, Any]]:
    """Return file, hash and size of the first wheel for a Python on x86_64. Raises RM105 where there is none."""
    rows = {each["url"].rpartition("/")[2]: each for each in wheels}
    file = next((file for file in rows if _suits(file, python)), None)
    if file is None:
        why = f"for x86_64 there is none among: {', '.join(rows) or 'no wheels at all'}"
        raise RocmatrixError("RM105", what=f"a wheel for Python {python}", where=str(LOCK), why=why)
    return file, {"sha256": rows[file]["hashes"]["sha256"], "bytes": rows[file]["size"]}
