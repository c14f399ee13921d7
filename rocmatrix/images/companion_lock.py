"""Lock of added packages: judged first, then resolved with hashes against the cell's own lock.

Packages are companions by name, and the lines of a requirements file. torch is no candidate in that resolution: an
empty stand-in of the locked version takes its place, so that pip neither fetches gigabytes of metadata nor replaces the
ROCm build by another. The same holds for what torch comes with, such as torchvision, whatever asks for it.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocmatrix.images import pip_report, wheel_source
from rocmatrix.images.added import conflicts, judging, requirements_file
from rocmatrix.images.added.requirements_file import Line
from rocmatrix.images.build import how_to_lock, made_recipe
from rocmatrix.images.pip_report import Resolved
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.matrix import Cell, Matrix, Wheel
from rocmatrix.runtime.errors import RocmatrixError

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
LOCK = "companions.json"  # what an earlier resolution added, beside the files of the image
_TAGS = "Wheel-Version: 1.0\nGenerator: rocmatrix\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def added(matrix: Matrix, cell: Cell, packages: Iterable[str]) -> Cell:
    """Return the cell with what is added in its name, judged and not resolved. Raises RM010, RM013, RM222.

    Args:
        packages: names of the companions, and words that stand for requirements files.
    """
    named = list(packages)
    files = [name for name in named if requirements_file.is_word(name)]
    return cell.adding([*(companion.package for companion in judging.choose(matrix, cell, named)), *files])


def locked(matrix: Matrix, cell: Cell, root: Path) -> Cell:
    """Return the cell with the wheels of its companions: those kept from an earlier build, else resolved and kept.

    Raises RM102 for an unlocked cell, and what `judging.choose` and resolving raise.

    Args:
        root: folder of the checkout.
    """
    chosen = judging.choose(matrix, cell, cell.companions)
    lines = judging.lines_of(matrix, cell, root)
    if cell.unlocked_because:
        raise RocmatrixError(
            "RM102", what=f"{cell.name} is unlocked", why=cell.unlocked_because, next=how_to_lock(cell)
        )
    more = _kept(cell, root)
    if more is None:
        more = resolve(matrix, cell, chosen, lines)
        _keep(cell, more, root)
    wheels = {**dict(cell.wheels), **more}
    ordered = tuple(sorted(wheels.items(), key=lambda row: row[0].lower()))
    return cell.model_copy(update={"wheels": ordered, "added": tuple(sorted(more))})


def _kept(cell: Cell, root: Path) -> dict[str, Wheel] | None:
    """Return what an earlier lock of these companions added to these very wheels, None where there is none."""
    try:
        kept = json.loads((made_recipe(cell, root) / LOCK).read_text(encoding="utf-8"))
        if kept["beside"] != _hashes(cell):
            return None
        return {file: Wheel.model_validate(wheel) for file, wheel in kept["added"].items()}
    except (OSError, ValueError, KeyError):
        return None


def _keep(cell: Cell, more: dict[str, Wheel], root: Path) -> None:
    place = made_recipe(cell, root)
    place.mkdir(parents=True, exist_ok=True)
    content = {"beside": _hashes(cell), "added": {file: wheel.model_dump() for file, wheel in more.items()}}
    (place / LOCK).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _hashes(cell: Cell) -> dict[str, str]:
    return {file: wheel.sha256 for file, wheel in cell.wheels}


def resolve(
    matrix: Matrix, cell: Cell, companions: Iterable[Companion], lines: Sequence[Line] = ()
) -> dict[str, Wheel]:
    """Return the wheels that companions and lines add to a cell's.

    Raises RM013, RM018, RM104, RM105, RM108 and what `wheel_source.wheel` raises.

    Args:
        companions: packages to resolve next to the cell's wheels.
        lines: requirements of a file, those that apply to the cell.
    """
    installed = [companion for companion in companions if not companion.provided]
    offered = _offered(matrix, cell)
    recorded = {
        companion.package: offered[companion.package] for companion in installed if companion.package in offered
    }
    requirements = [requirement(companion, cell) for companion in installed if companion.package not in recorded]
    packages = [line for line in lines if not line.only_bounds and line.name not in conflicts.provided(cell)]
    requirements += [_requirement_of_line(matrix, cell, line) for line in packages]
    if not requirements:
        return dict(recorded.values())
    bounds = [f"{line.name}{line.requirement.specifier}" for line in lines if line.requirement.specifier]
    rows = _resolved_by_pip(cell, requirements, bounds, [wheel for _, wheel in offered.values()])
    conflicts.refuse_hashes((row for row in rows if canonicalize_name(row.name) not in offered), lines, cell)
    return dict(recorded.values()) | dict(_added_by(rows, matrix, cell, offered))


def _requirement_of_line(matrix: Matrix, cell: Cell, line: Line) -> str:
    """Return what pip is asked for: a line without bounds takes those that go with the cell's torch, where known."""
    companion = judging.known(matrix, line.name)
    if companion is None or line.requirement.specifier or companion.package != line.name:
        return line.name_and_bounds
    return line.name_and_bounds + requirement(companion, cell).removeprefix(companion.package)


def _resolved_by_pip(
    cell: Cell, requirements: Sequence[str], bounds: Sequence[str], offered: Sequence[Wheel]
) -> list[Resolved]:
    """Return what pip takes for requirements next to what the cell holds, and may hold of torch's own companions.

    Args:
        requirements: requirements.
        bounds: constraints next to the cell's own.
        offered: recorded wheels of torch's own companions.
    """
    held = conflicts.provided(cell)
    pinned = held | {canonicalize_name(wheel.name): wheel.version for wheel in offered}
    own = [f"{name}=={conflicts.own_version(cell, name)}" for name in cell.release.companions if name not in pinned]
    with tempfile.TemporaryDirectory() as links:
        for name, version in pinned.items():
            stand_in(Path(links), name, version)
        question = pip_report.Question(
            python=cell.python,
            requirements=tuple(requirements),
            constraints=(*(f"{name}=={version}" for name, version in pinned.items()), *own, *bounds),
            links=links,
        )
        stack = any(wheel_source.of_stack(Requirement(each).name) for each in requirements)
        return _answered(replace(question, index=cell.release.index) if stack else question, cell)


def _answered(question: pip_report.Question, cell: Cell) -> list[Resolved]:
    """Return pip's answer; a package that asks for torch's own companions needs the release's own index, too."""
    try:
        return pip_report.query(question)
    except RocmatrixError as error:
        if error.code != "RM105" or question.index or not any(name in error.why for name in cell.release.companions):
            raise
    return pip_report.query(replace(question, index=cell.release.index))


def _added_by(
    rows: Iterable[Resolved], matrix: Matrix, cell: Cell, offered: Mapping[str, tuple[str, Wheel]]
) -> Iterator[tuple[str, Wheel]]:
    """Yield the wheels among pip's choices that the cell does not hold, each judged: a dependency counts, too.

    Args:
        rows: pip's choices.
        offered: recorded wheels of torch's own companions, by package.
    """
    held, today = conflicts.provided(cell), date.today()
    for row in rows:
        name = canonicalize_name(row.name)
        if name in held:
            continue
        if name in offered:
            yield offered[name]
            continue
        if (companion := judging.known(matrix, name)) is not None and (broken := judging.broken_by(companion, cell)):
            raise judging.refusal(
                matrix, companion, cell, broken[0], name=f"{row.name}, which another package asks for,"
            )
        stack = wheel_source.of_stack(name)
        if stack and not _of_release(row, cell):
            why = f"pip chose {row.url}; one that goes with {cell.release.requirement(cell.architecture)} was not found"
            raise RocmatrixError("RM108", what=row.file, where=str(cell.release.index), why=why)
        yield row.file, wheel_source.wheel(row, index=cell.release.index if stack else None, today=today)


def _of_release(row: Resolved, cell: Cell) -> bool:
    """Return whether a package of torch's is the one that the release names."""
    name = canonicalize_name(row.name)
    return name in cell.release.companions and row.version == conflicts.own_version(cell, name)


def requirement(companion: Companion, cell: Cell) -> str:
    """Return what pip is asked for: the release's own version of a companion, or the range that goes with torch."""
    release = cell.release
    if companion.package in release.companions:
        return f"{companion.package}=={conflicts.own_version(cell, companion.package)}"
    bounds = companion.version(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    return companion.package + (bounds or "")


def _offered(matrix: Matrix, cell: Cell) -> dict[str, tuple[str, Wheel]]:
    """Return file and wheel of torch's own companions whose hashes are in the matrix: no index need be asked."""
    tag = f"-cp{cell.python.replace('.', '')}-cp{cell.python.replace('.', '')}-"
    versions = {package: conflicts.own_version(cell, package) for package in cell.release.companions}
    return {
        wheel.name: (file, wheel)
        for file, wheel in matrix.wheels.items()
        if versions.get(wheel.name) == wheel.version and tag in file
    }


def stand_in(links: Path, name: str, version: str) -> Path:
    """Write a wheel with nothing but a name and a version, for pip to count as the locked one.

    Args:
        links: folder that pip searches.
        name: name of the package.
        version: its version.
    """
    module = name.replace("-", "_")
    about = f"{module}-{version}.dist-info"
    path = links / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{about}/METADATA", _METADATA.format(name=name, version=version))
        archive.writestr(f"{about}/WHEEL", _TAGS)
        archive.writestr(f"{about}/RECORD", "")
    return path
