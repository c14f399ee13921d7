"""Which modules are mutated, which tests judge each, and the copy of the checkout in which that happens."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.source import hash_of

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module, and the test files and folders that judge it; `skip` is an expression for pytest's -k."""

    path: str
    tests: tuple[str, ...]
    skip: str = ""

    @property
    def source(self) -> str:
        """The hash of the module's code as it is."""
        return hash_of((ROOT / self.path).read_bytes())


def read(name: str) -> dict[str, Any]:
    """Read one of the files next to this module."""
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def modules() -> list[Module]:
    """Return the modules of modules.toml, the most deciding first, each with its mirrored tests and those named."""
    found = read("modules.toml")["modules"]
    return [
        Module(
            path=path,
            tests=tuple(dict.fromkeys([*mirrored(path), *entry.get("tests", [])])),
            skip=entry.get("skip", ""),
        )
        for path, entry in found.items()
    ]


def mirrored(path: str) -> list[str]:
    """Return the unit tests that mirror a module: test_NAME.py and test_NAME_*.py in the same place."""
    place = ROOT / "tests" / "unit" / Path(path).parent
    stem = Path(path).stem
    found = [*place.glob(f"test_{stem}.py"), *place.glob(f"test_{stem}_*.py")]
    return sorted(str(test.relative_to(ROOT)) for test in found)


def chosen(names: list[str]) -> list[Module]:
    """Return the modules named, or all. Ends the program for a name that modules.toml does not hold."""
    known = {module.path: module for module in modules()}
    if missing := [name for name in names if name not in known]:
        sys.exit(f"not in modules.toml: {', '.join(missing)}; known: {', '.join(known)}")
    return [known[name] for name in names] or list(known.values())


def copy_checkout(folder: Path) -> None:
    """Copy the files that git knows or does not ignore, so that no mutant touches the checkout."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, folder / name
        if not (source.is_symlink() or source.exists()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
