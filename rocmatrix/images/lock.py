"""Locks: which wheel files an image installs, and the hash each must have.

The torch and triton wheels are recorded in matrix/wheels.yaml with the place their hash came from; where
they are not, the release's own index is asked. Everything else is resolved by pip for the image's own Python
and platform, and written next to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from rocmatrix.images import wheel_source
from rocmatrix.images.pip_report import Answer, Question, query_all
from rocmatrix.matrix.loading.load import PART_FILES
from rocmatrix.matrix.matrix import Cell, Matrix, Release, Wheel
from rocmatrix.runtime.errors import RocmatrixError

# What the trainer imports, and what torch's own metadata asks for (2.4 to 2.15).
TRAINER_REQUIREMENTS = ("numpy", "polars", "pyyaml", "safetensors", "tensorboardx", "tqdm", "zstandard")
TORCH_REQUIREMENTS = ("filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions")

_HEADER = "# Written by `./invokew lock`. {what}\n"
_WHEELS_ARE = "The hash of every wheel an image may install, by the place where it was read."
_LOCKS_ARE = "Release -> Python -> the wheel files of its image, described in wheels.yaml."


@dataclass(frozen=True, kw_only=True)
class Target:
    """One lock: a release for one Python, and for one architecture where each has packages of its own."""

    release: Release
    python: str
    architecture: str | None = None

    def __hash__(self) -> int:
        return hash((self.key, self.python))

    @property
    def key(self) -> str:
        """The name of the lock in locks.yaml."""
        return self.release.lock_name(self.architecture)

    @property
    def summary(self) -> str:
        """The target as a person reads it."""
        tried = "; host and device wheels: tried on synthetic indexes only" if self.release.by_architecture else ""
        return f"{self.key}, Python {self.python}{tried}"


@dataclass(frozen=True, kw_only=True)
class Locked:
    """Outcome of locking: targets with all their hashes, and why the others have none."""

    done: dict[Target, dict[str, Wheel]] = field(default_factory=dict)
    failed: dict[Target, RocmatrixError] = field(default_factory=dict)

    @property
    def failures(self) -> str:
        """A line for each release that was not locked for some Python, with the reason."""
        pythons: dict[tuple[str, str], list[str]] = {}
        for target, error in self.failed.items():
            why = error.why.replace("\n", "; ") or f"{error.title}: {error.what}"
            pythons.setdefault((target.key, f"{error.code} {why}"), []).append(target.python)
        return "\n".join(f"{key} (Python {', '.join(some)}): {why}" for (key, why), some in pythons.items())


def lock(
    matrix: Matrix,
    root: Path,
    *,
    targets: Iterable[Target] | None = None,
    upgrade: bool = False,
    today: date | None = None,
) -> Locked:
    """Resolve every target (default: what cells use) and write matrix/wheels.yaml and matrix/locks.yaml.

    Recorded versions are kept unless `upgrade` is given. What fails for one target is reported and does not
    stop the others.

    Args:
        root: folder of the checkout, whose matrix/wheels.yaml and matrix/locks.yaml are written.
        targets: what to resolve; None for all that cells use.
        upgrade: take newer versions than the recorded ones.
        today: date of the records; None for the current one.
    """
    today = today or date.today()
    questions = {
        target: question(matrix, target, upgrade=upgrade)
        for target in (used_targets(matrix) if targets is None else targets)
    }
    answers = query_all(questions.values())
    result = Locked()
    for target, query in questions.items():
        try:
            result.done[target] = _wheels(matrix, target, query, answers[query], today=today)
        except RocmatrixError as error:
            result.failed[target] = error
    _write(matrix, result, root)
    return result


def used_targets(matrix: Matrix) -> list[Target]:
    """Return what cells use, in file order, and the other Pythons of their releases that have a recorded torch.

    The latter serve native environments, whose Python is not the one of an image's base.
    """
    return list(dict.fromkeys(target for cell in matrix.cells for target in _targets_of(matrix, cell)))


def _targets_of(matrix: Matrix, cell: Cell) -> list[Target]:
    architecture = cell.architecture if cell.release.by_architecture else None
    recorded = matrix.locks.get(cell.lock_name, {})
    pythons = sorted({cell.python, *recorded}, key=Version)
    return [Target(release=cell.release, python=python, architecture=architecture) for python in pythons]


def all_targets(matrix: Matrix) -> list[Target]:
    """Return every release with every Python it was built for; by architecture only where a cell asks for one."""
    bundled = (
        Target(release=release, python=python)
        for release in matrix.releases
        for python in sorted({*release.pythons, *matrix.locks.get(release.name, {})}, key=Version)
        if not release.by_architecture
    )
    return list(dict.fromkeys([*used_targets(matrix), *bundled]))


def cell_targets(matrix: Matrix, name: str) -> list[Target]:
    """Return the targets of one cell, written or derived. Raises RM010."""
    return _targets_of(matrix, matrix.cell(name))


def question(matrix: Matrix, target: Target, *, upgrade: bool) -> Question:
    """Return what pip is asked: the packages in addition to a recorded torch, or torch with all it needs.

    Args:
        upgrade: take newer versions than the recorded ones.
    """
    recorded = _recorded(matrix, target)
    python_wheels = [wheel for wheel in recorded.values() if wheel.index == "python"]
    constraints = () if upgrade else tuple(f"{wheel.name}=={wheel.version}" for wheel in python_wheels)
    pins = target.release.pins
    if _torch_recorded(target, recorded):
        names = dict.fromkeys((*TRAINER_REQUIREMENTS, *TORCH_REQUIREMENTS))
        requirements = tuple(name + pins.get(name, "") for name in names)
        return Question(python=target.python, requirements=requirements, constraints=constraints)
    requirements = (target.release.requirement(target.architecture), *TRAINER_REQUIREMENTS)
    requirements += tuple(name + bounds for name, bounds in pins.items())
    return Question(
        python=target.python, requirements=requirements, constraints=constraints, index=target.release.index
    )


def _torch_recorded(target: Target, recorded: dict[str, Wheel]) -> bool:
    """Return whether torch's own hash is known. Where ROCm is in packages of its own, these come with torch."""
    return not target.release.by_architecture and any(wheel.name == "torch" for wheel in recorded.values())


def _recorded(matrix: Matrix, target: Target) -> dict[str, Wheel]:
    files = matrix.locks.get(target.key, {}).get(target.python, [])
    return {file: matrix.wheels[file] for file in files}


def _wheels(matrix: Matrix, target: Target, query: Question, answer: Answer, *, today: date) -> dict[str, Wheel]:
    """Return the wheels of one lock. Raises what asking raised, RM103, RM106 to RM108."""
    if isinstance(answer, RocmatrixError):
        raise answer
    recorded = _recorded(matrix, target)
    kept = {file: wheel for file, wheel in recorded.items() if query.index is None and wheel.index == "pytorch"}
    for file, wheel in kept.items():
        wheel_source.refuse_unreleased(file, wheel.sources, today=today)
    own = [row for row in answer if not target.release.foreign(row.name, target.architecture)]
    found = {row.file: _known(matrix, row.file, wheel_source.wheel(row, index=query.index, today=today)) for row in own}
    return kept | found


def _known(matrix: Matrix, file: str, wheel: Wheel) -> Wheel:
    """Keep the recorded description of a file. Raises RM103 where the index reports other bytes now."""
    recorded = matrix.wheels.get(file, wheel)
    if recorded.sha256 != wheel.sha256:
        why = f"recorded {recorded.sha256} ({', '.join(recorded.sources)})\nnow      {wheel.sha256}"
        raise RocmatrixError("RM103", what=file, where=", ".join(wheel.sources), why=why)
    return recorded


def _write(matrix: Matrix, result: Locked, root: Path) -> None:
    locks = {name: dict(pythons) for name, pythons in matrix.locks.items()}
    wheels = dict(matrix.wheels)
    for target, found in result.done.items():
        locks.setdefault(target.key, {})[target.python] = sorted(found, key=str.lower)
        wheels |= found
    needed = {file for pythons in locks.values() for files in pythons.values() for file in files}
    kept = {file: wheels[file] for file in sorted(wheels) if _stays(file, wheels[file], needed)}
    _write_yaml(root / PART_FILES["wheels"], _WHEELS_ARE, _by_origin(kept))
    _write_yaml(root / PART_FILES["locks"], _LOCKS_ARE, dict(_in_order(matrix, locks)))


def _stays(file: str, wheel: Wheel, needed: set[str]) -> bool:
    """Keep hashes that are hard to come by, even where no lock names them yet."""
    return file in needed or wheel.index == "pytorch"


def _by_origin(wheels: Mapping[str, Wheel]) -> list[dict[str, Any]]:
    """Put together the hashes that were read in one place."""
    groups: dict[str, dict[str, Any]] = {}
    for file, wheel in wheels.items():
        about = {"index": wheel.index, "sources": list(wheel.sources), "confidence": wheel.confidence}
        groups.setdefault(repr(about), {**about, "sha256": {}})["sha256"][file] = wheel.sha256
    return [groups[key] for key in sorted(groups)]


def _in_order(matrix: Matrix, locks: dict[str, dict[str, list[str]]]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the locks in the order of releases and Pythons, so that the same content gives the same file."""
    for release in matrix.releases:
        for name in sorted(name for name in locks if release.owns_lock(name)):
            yield name, {python: locks[name][python] for python in sorted(locks[name], key=Version)}


def _write_yaml(path: Path, what: str, data: Any) -> None:
    text = _HEADER.format(what=what) + yaml.safe_dump(data, sort_keys=False, width=110)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
