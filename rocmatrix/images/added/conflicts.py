"""Conflicts between a requirements file and a cell, before pip resolves it and after.

The cell's own wheels were locked and proven together, torch first among them. No added package replaces one: a line
that asks for another version of one is refused with both, and so is a wheel that would write over a file of theirs.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from packaging.markers import default_environment
from packaging.utils import canonicalize_name

from rocmatrix.images.added.requirements_file import Line
from rocmatrix.images.pip_report import Resolved
from rocmatrix.matrix.matrix import Cell, Matrix, Wheel
from rocmatrix.runtime.errors import RocmatrixError

# Folders of a wheel's `.data` whose files pip installs next to the packages, or next to python itself.
_LIBRARIES, _SCRIPTS = ("purelib", "platlib"), "scripts"
_SHOWN = 5
_TRITON = ("pytorch-triton-rocm", "triton-rocm")  # what torch for ROCm asks for; either holds the folder `triton`


def provided(cell: Cell) -> dict[str, str]:
    """Return the versions that the cell holds already, by canonical name; its Triton also under the plain name."""
    held: dict[str, str] = {canonicalize_name(wheel.name): wheel.version for _, wheel in cell.wheels}
    triton = next((held[name] for name in _TRITON if name in held), None)
    return ({"triton": triton} if triton else {}) | held


def own_version(cell: Cell, package: str) -> str:
    """Return the version of one of torch's own companions that the release names, with its build."""
    rocm = cell.release.rocm
    return f"{cell.release.companions[package]}+{f'rocm{rocm}' if rocm else 'cpu'}"


def applying(lines: Iterable[Line], cell: Cell) -> tuple[Line, ...]:
    """Return the lines whose markers hold in the image: its Python on Linux, whatever this machine has."""
    image = {
        **{name: str(value) for name, value in default_environment().items()},
        "python_version": cell.python,
        "python_full_version": f"{cell.python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    return tuple(line for line in lines if line.requirement.marker is None or line.requirement.marker.evaluate(image))


def refuse_replacements(lines: Iterable[Line], matrix: Matrix, cell: Cell) -> None:
    """Raise RM018 with every line that asks for another version of what the cell holds.

    Args:
        lines: those that apply to the image.
    """
    held = {name: own_version(cell, name) for name in cell.release.companions} | provided(cell)
    against = [
        line
        for line in lines
        if line.name in held and not line.requirement.specifier.contains(held[line.name], prereleases=True)
    ]
    if not against:
        return
    found = [
        f"{line.where}: {line.requirement.name}{line.requirement.specifier}; the cell has {held[line.name]}"
        for line in against
    ]
    raise RocmatrixError(
        "RM018",
        what=f"{len(against)} of the lines ask{'s' if len(against) == 1 else ''} for another version of what "
        f"{cell.name} has",
        where=against[0].where,
        why="\n".join(found) + "\nThe cell's own wheels were locked together, and no added package replaces one.",
        next=_way_out(against, matrix, cell),
    )


def _way_out(against: Iterable[Line], matrix: Matrix, cell: Cell) -> str:
    """Return the advice: the card's cells that hold a torch as asked for, else the lines to loosen."""
    torches = [line.requirement.specifier for line in against if line.name == "torch"]
    fitting = [
        other.name
        for other in matrix.cells
        if torches and other.architecture == cell.architecture and not other.broken_by and not other.unlocked_because
        and all(bounds.contains(other.release.torch, prereleases=True) for bounds in torches)
    ]  # fmt: skip
    names = ", ".join(dict.fromkeys(line.name for line in against))
    other = f", or take --cell {fitting[0]}, whose torch the file asks for" if fitting else ""
    return f"Remove the bounds of {names} from the file{other}."


def refuse_hashes(rows: Iterable[Resolved], lines: Iterable[Line], cell: Cell) -> None:
    """Raise RM018 where pip chose a file whose hash is not among those that the file names for the package.

    What the cell holds already has its hash in the cell's own lock.

    Args:
        rows: what pip chose.
        lines: those that apply to the image.
    """
    named = {line.name: line for line in lines if line.sha256 and line.name not in provided(cell)}
    for row in rows:
        line = named.get(canonicalize_name(row.name))
        if line is not None and row.sha256 not in line.sha256:
            raise RocmatrixError(
                "RM018",
                what=f"the hash of {row.file} is not among those that the file names",
                where=line.where,
                why=f"found    sha256 {row.sha256}\nexpected sha256 " + ", ".join(line.sha256),
                next="Lock the file for this Python and Linux too, or remove its hashes: they are recorded here.",
            )


def refuse_overwriting(cell: Cell, folder: Path) -> None:
    """Raise RM110 where an added wheel holds a file, or a program, that one of the cell's own wheels installs.

    Args:
        cell: the cell with what was added to it.
        folder: where the checked wheels of both are.
    """
    theirs: dict[str, str] = {}
    for file, _ in cell.wheels:
        theirs |= {} if file in cell.added else dict.fromkeys(installed(folder / file), file)
    for file, wheel in cell.wheels:
        if file in cell.added and (both := sorted(path for path in installed(folder / file) if path in theirs)):
            raise _overwriting(file, wheel, both, theirs)


def _overwriting(file: str, wheel: Wheel, both: list[str], theirs: Mapping[str, str]) -> RocmatrixError:
    rest = f" and {len(both) - _SHOWN} more" if len(both) > _SHOWN else ""
    return RocmatrixError(
        "RM110",
        what=f"{wheel.name} {wheel.version} would write over {theirs[both[0]]}",
        where=file,
        why=f"both hold {', '.join(both[:_SHOWN])}{rest}",
        next=f"Leave {wheel.name} out, or what asks for it.",
    )


def installed(path: Path) -> Iterator[str]:
    """Yield where pip installs the files of a wheel, below the folder of packages or as bin/NAME.

    Args:
        path: a wheel.
    """
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            top, _, rest = name.partition("/")
            if not rest or name.endswith("/") or top.endswith(".dist-info"):
                if top.endswith(".dist-info") and rest == "entry_points.txt":
                    yield from (f"bin/{each}" for each in _programs(archive.read(name).decode(errors="replace")))
                elif name == top:
                    yield name
                continue
            kind, _, inner = rest.partition("/")
            if not top.endswith(".data"):
                yield name
            elif kind in _LIBRARIES:
                yield inner
            elif kind == _SCRIPTS:
                yield f"bin/{inner}"
            elif kind == "data":
                yield from _of_prefix(inner)


def _of_prefix(path: str) -> Iterator[str]:
    """Yield a file that is installed below the environment itself, by what it is a file of."""
    parts = path.split("/")
    if "site-packages" in parts:
        yield "/".join(parts[parts.index("site-packages") + 1 :])
    elif parts[0] == "bin":
        yield path


def _programs(text: str) -> Iterator[str]:
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[] \t")
        elif section in ("console_scripts", "gui_scripts") and "=" in line:
            yield line.partition("=")[0].strip()
