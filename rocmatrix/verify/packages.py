"""The installed packages against the lock: the same set, the same versions."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from rocmatrix.matrix.matrix import Cell
from rocmatrix.verify.finding import Check, Finding

NAME = "packages"
OF_VENV = ("pip", "setuptools")  # what `python3 -m venv` puts there, by the distribution's version


def check(installed: Mapping[str, str], cell: Cell) -> Check:
    """Compare installed {name: version} with the cell's lock. A cell without one cannot pass."""
    if cell.unlocked_because:
        finding = Finding(code="RM216", what=f"the cell has no lock to compare with: {cell.unlocked_because}")
        return Check(name=NAME, summary="no lock", findings=(finding,))
    locked = {canonicalize_name(wheel.name): wheel.version for _, wheel in cell.wheels}
    there = {name: version for name, version in installed.items() if name not in OF_VENV or name in locked}
    missing = sorted(locked.keys() - there.keys())
    extra = sorted(f"{name} {there[name]}" for name in there.keys() - locked.keys())
    other = sorted(
        f"{name} {there[name]} where {locked[name]} is locked"
        for name in locked.keys() & there.keys()
        if not _same(locked[name], there[name])
    )
    kinds = (("locked and not installed", missing), ("installed and not locked", extra), ("of another version", other))
    findings = tuple(Finding(code="RM216", what=what, places=tuple(names)) for what, names in kinds if names)
    return Check(name=NAME, summary=f"{len(there)} installed, {len(locked)} locked", findings=findings)


def _same(locked: str, installed: str) -> bool:
    try:
        return Version(locked) == Version(installed)
    except InvalidVersion:
        return locked == installed
