"""Remove other architectures' files from the kernel libraries of bundled wheels, in the layer that installs them.

Only whole files go, and only where the path names their target: `rocmatrix.verify.devicecode.names` has the
layouts and their sources. Files with no target in their name stay: rocBLAS's fallback logic, hipBLASLt's mapping and
transforms, MIOpen's databases for all. Host libraries (.so) that hold bundles for several targets stay untouched:
rewriting one would move sections that its program headers and relocations point to. A family's folder, such as
AOTriton's amd-gfx11xx, stays for each card of the family.

The image's own Python runs this with the standard library alone. One JSON line on standard output lists what was
removed; exit status 1 and a line on standard error when there was nothing to remove, a library would have lost its own
architecture, or bytes did not go down. Nothing is removed before all of that is known but the last.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rocmatrix.verify.devicecode.names import TENSILE, target_of

CODE = "RM220"
OTHERS = {"aotriton.images": "AOTriton", "miopen": "MIOpen"}
MUST_KEEP = ("rocblas",)  # the others are missing for some architectures: hipBLASLt, AOTriton and MIOpen fall back


@dataclass
class Library:
    """The files of one library by what is to become of them."""

    own: list[Path] = field(default_factory=list)
    foreign: list[Path] = field(default_factory=list)
    shared: list[Path] = field(default_factory=list)


class RefusedError(Exception):
    """Pruning was refused before anything was removed, or its result was wrong."""


def plan(root: Path, architecture: str) -> dict[str, Library]:
    """Sort every file of a kernel library below `root` into own, foreign and shared."""
    libraries: dict[str, Library] = {}
    for path in _files(root):
        name = library_of(path)
        if name is None:
            continue
        library = libraries.setdefault(name, Library())
        target = target_of(path.as_posix())
        if target is None:
            library.shared.append(path)
        else:
            (library.own if target.runs_on(architecture) else library.foreign).append(path)
    return libraries


def library_of(path: Path) -> str | None:
    """Return which library a file is part of, by the folders it is in; None for any other file and for a .so."""
    folders = path.parts[:-1]
    if ".so" in path.suffixes:
        return None
    if "library" in folders:
        return next((name for name in TENSILE if name in folders), None)
    return next((name for folder, name in OTHERS.items() if folder in folders), None)


def check(libraries: dict[str, Library], architecture: str) -> None:
    """Raise `RefusedError` unless there is something to remove and each library keeps its own architecture."""
    if not any(library.foreign for library in libraries.values()):
        raise RefusedError(f"no file for an architecture other than {architecture} was found")
    for name, held in libraries.items():
        if name in MUST_KEEP and not any(path.stat().st_size for path in held.own):
            raise RefusedError(f"{name} has no file for {architecture}: {len(held.foreign)} are for others")
    if not any(library.own for library in libraries.values()):
        raise RefusedError(f"no library has a file for {architecture}")


def remove(libraries: dict[str, Library]) -> None:
    """Remove what is foreign, and folders that are empty after that."""
    for library in libraries.values():
        for path in library.foreign:
            path.unlink()
        for folder in {path.parent for path in library.foreign}:
            _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    while folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def size(root: Path) -> int:
    """Return the bytes of all files below `root`, as stored, each hard-linked file once."""
    seen = {(about.st_dev, about.st_ino): about.st_size for path in _files(root) for about in [path.lstat()]}
    return sum(seen.values())


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def prune(root: Path, architecture: str) -> dict[str, object]:
    """Prune below `root` and return what was done, as plain data. Raises `RefusedError`."""
    before = size(root)
    libraries = plan(root, architecture)
    check(libraries, architecture)
    kept = [path for library in libraries.values() for path in (*library.own, *library.shared)]
    remove(libraries)
    after = size(root)
    if after >= before:
        raise RefusedError(f"{before} bytes before, {after} after")
    if lost := [str(path) for path in kept if not path.is_file()]:
        raise RefusedError(f"{len(lost)} files that were to stay are gone, such as {lost[0]}")
    counts = {
        name: {"removed": len(one.foreign), "own": len(one.own), "shared": len(one.shared)}
        for name, one in sorted(libraries.items())
    }
    return {"architecture": architecture, "before": before, "after": after, "libraries": counts}


def main(argv: Sequence[str] | None = None) -> int:
    """Prune by the options of the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="prune", description="Keep the kernels of one architecture.")
    parser.add_argument("--architecture", required=True, help="such as gfx1100")
    parser.add_argument("root", type=Path, help="where the wheels are installed")
    arguments = parser.parse_args(argv)
    try:
        print(json.dumps(prune(arguments.root, arguments.architecture)), flush=True)
    except (RefusedError, OSError) as error:
        print(f"{CODE} Pruning failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
