"""Adding companion packages to a cell: judged first, then resolved with hashes against the cell's own lock.

torch is no candidate in that resolution: an empty stand-in of the locked version takes its place, so that pip
neither fetches gigabytes of metadata nor replaces the ROCm build by another.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from packaging.utils import canonicalize_name

from rocmatrix.images import pip_report, wheel_source
from rocmatrix.images.build import how_to_lock, made_recipe
from rocmatrix.matrix.companion import Companion
from rocmatrix.matrix.matrix import Cell, Matrix, Wheel
from rocmatrix.matrix.rule import Rule
from rocmatrix.runtime.errors import RocmatrixError, suggestion

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
LOCK = "companions.json"  # what an earlier resolution added, beside the files of the image
_TAGS = "Wheel-Version: 1.0\nGenerator: rocmatrix\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def added(matrix: Matrix, cell: Cell, packages: Iterable[str]) -> Cell:
    """Return the cell with companions in its name, judged and not resolved. Raises RM010, RM013, RM222.

    Args:
        packages: names of the companions.
    """
    return cell.adding(companion.package for companion in choose(matrix, cell, packages))


def locked(matrix: Matrix, cell: Cell, root: Path) -> Cell:
    """Return the cell with the wheels of its companions: those kept from an earlier build, else resolved and kept.

    Raises RM102 for an unlocked cell, and what `choose` and resolving raise.

    Args:
        root: folder of the checkout.
    """
    chosen = choose(matrix, cell, cell.companions)
    if cell.unlocked_because:
        raise RocmatrixError(
            "RM102", what=f"{cell.name} is unlocked", why=cell.unlocked_because, next=how_to_lock(cell)
        )
    more = _kept(cell, root)
    if more is None:
        more = resolve(matrix, cell, chosen)
        _keep(cell, more, root)
    wheels = {**dict(cell.wheels), **more}
    return cell.model_copy(update={"wheels": tuple(sorted(wheels.items(), key=lambda row: row[0].lower()))})


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


def choose(matrix: Matrix, cell: Cell, packages: Iterable[str]) -> list[Companion]:
    """Return the companions of these names. Raises RM010 for an unknown one, RM013 for one
    broken on the cell, RM222 for one that no index serves as a wheel for ROCm.

    Args:
        packages: names of the companions.
    """
    known = {canonicalize_name(companion.package): companion for companion in matrix.companions}
    chosen = []
    for name in dict.fromkeys(canonicalize_name(package) for package in packages):
        if name not in known:
            hint = suggestion(name, known)
            raise RocmatrixError("RM010", what=f"there is no companion {name!r}", where="--with", next=hint)
        if broken := _broken_by(known[name], cell):
            raise _refusal(matrix, known[name], cell, broken[0])
        if known[name].no_wheel:
            raise _no_wheel(known[name], cell)
        chosen.append(known[name])
    return chosen


def _broken_by(companion: Companion, cell: Cell) -> list[Rule]:
    release = cell.release
    rules = companion.rules_on(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    return [rule for rule in rules if rule.decides and rule.verdict == "broken"]


def _refusal(matrix: Matrix, companion: Companion, cell: Cell, rule: Rule) -> RocmatrixError:
    same_card = (other for other in matrix.cells if other.architecture == cell.architecture)
    fitting = [other.name for other in same_card if not _broken_by(companion, other) and not other.broken_by]
    advice = f"leave it out, or take --cell {fitting[0]}" if fitting else "leave it out: no cell of the card has it"
    return RocmatrixError(
        "RM013",
        what=f"{companion.package} on {cell.name}",
        where=f"rule {rule.id} in matrix/companions.yaml",
        why=f"{rule.words}\n{rule.evidence.words}",
        next=advice,
    )


def _no_wheel(companion: Companion, cell: Cell) -> RocmatrixError:
    release = cell.release
    rules = companion.rules_on(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    verdict = companion.verdict(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    reasons = [f"{rule.verdict}: {rule.words}\n{rule.evidence.words}" for rule in rules if rule.decides]
    return RocmatrixError(
        "RM222",
        what=f"{companion.package} on {cell.name}, where it is {verdict} once built",
        where="matrix/companions.yaml",
        why="\n".join(reasons) or "no rule covers it on this architecture",
        next=str(companion.no_wheel),
    )


def resolve(matrix: Matrix, cell: Cell, companions: Iterable[Companion]) -> dict[str, Wheel]:
    """Return the wheels that companions add to a cell's. Raises RM104, RM105 and what `wheel_source.wheel` raises.

    Args:
        companions: packages to resolve next to the cell's wheels.
    """
    wanted = [companion for companion in companions if not companion.provided]
    recorded = dict(row for companion in wanted for row in _recorded(matrix, cell, companion))
    asked = [companion for companion in wanted if companion.package not in {w.name for w in recorded.values()}]
    if not asked:
        return recorded
    held = [*(wheel for _, wheel in cell.wheels), *recorded.values()]
    with tempfile.TemporaryDirectory() as links:
        for wheel in held:
            stand_in(Path(links), wheel)
        question = pip_report.Question(
            python=cell.python,
            requirements=tuple(requirement(companion, cell) for companion in asked),
            constraints=tuple(f"{wheel.name}=={wheel.version}" for wheel in held),
            index=cell.release.index if any(wheel_source.of_stack(companion.package) for companion in asked) else None,
            links=links,
        )
        rows = pip_report.ask(question)
    names = {canonicalize_name(wheel.name) for wheel in held}
    new = [row for row in rows if canonicalize_name(row.name) not in names]
    today = date.today()
    return recorded | {row.file: wheel_source.wheel(row, index=question.index, today=today) for row in new}


def requirement(companion: Companion, cell: Cell) -> str:
    """Return what pip is asked for: the release's own version of a companion, or the range that goes with torch."""
    release = cell.release
    if own := release.companions.get(companion.package):
        return f"{companion.package}=={own}+{f'rocm{release.rocm}' if release.rocm else 'cpu'}"
    bounds = companion.version(architecture=cell.architecture, torch=release.torch, rocm=release.rocm)
    return companion.package + (bounds or "")


def _recorded(matrix: Matrix, cell: Cell, companion: Companion) -> list[tuple[str, Wheel]]:
    """Return the wheel whose hash is in the matrix already: these come from no index that pip could ask."""
    asked, tag = requirement(companion, cell), f"-cp{cell.python.replace('.', '')}-cp{cell.python.replace('.', '')}-"
    found = [(file, w) for file, w in matrix.wheels.items() if f"{w.name}=={w.version}" == asked and tag in file]
    return found[:1]


def stand_in(links: Path, wheel: Wheel) -> Path:
    """Write a wheel with nothing but a name and a version, for pip to count as the locked one."""
    module = wheel.name.replace("-", "_")
    about = f"{module}-{wheel.version}.dist-info"
    path = links / f"{module}-{wheel.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{about}/METADATA", _METADATA.format(name=wheel.name, version=wheel.version))
        archive.writestr(f"{about}/WHEEL", _TAGS)
        archive.writestr(f"{about}/RECORD", "")
    return path
