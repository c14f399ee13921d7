"""The environment of an image, file by file, against the locked wheels: same bytes, nothing missing, nothing more."""

from __future__ import annotations

import hashlib
import posixpath
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from rocmatrix.images import render
from rocmatrix.images.wheelhouse import sha256
from rocmatrix.matrix.matrix import Cell
from rocmatrix.verify.devicecode.names import target_of
from rocmatrix.verify.files import environment, wheel
from rocmatrix.verify.files.environment import Environment
from rocmatrix.verify.files.tree import VENV, Row, Tree, parents
from rocmatrix.verify.files.wheel import EXECUTABLE, PLAIN, Member, Wheel
from rocmatrix.verify.finding import Check, Finding
from rocmatrix.verify.pruning import prune

NAME = "files"
CODE = "RM660"
CACHE = "__pycache__"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected content of an environment by path: wheels' files, contents that pip and venv write, and links."""

    files: dict[str, list[Member]]
    written: dict[str, set[bytes]]
    links: dict[str, set[str]]
    records: dict[str, Wheel]
    folders: set[str]

    @property
    def paths(self) -> set[str]:
        """Everything but folders and byte code."""
        return {*self.files, *self.written, *self.links, *self.records}


def check(tree: Tree, cell: Cell, wheels: Path) -> Check:
    """Compare with the locked wheels of `cell`, in the folder `wheels`. What cannot be compared has failed.

    Args:
        wheels: folder of the locked wheels.
    """
    if cell.unlocked_because:
        return _failed("no lock", f"the cell has no lock to compare with: {cell.unlocked_because}")
    found = environment.of(tree)
    if found is None or not environment.configuration_is_venvs(tree, found):
        return _failed("no environment", "not as venv writes it", environment.CONFIGURATION)
    opened, problems = _opened(cell, wheels, found)
    if problems:
        what = f"the locked wheels are not in {wheels}, or not whole; --wheelhouse names another folder"
        finding = Finding(code=CODE, what=what, places=tuple(problems))
        return Check(name=NAME, summary="no wheels to compare with", findings=(finding,))
    try:
        expected = _expected(tree, found, opened)
        findings = tuple(_compared(tree, expected, cell))
    finally:
        _close(opened)
    count = len(expected.files)
    summary = f"{count} files of {len(opened)} locked wheels, by their bytes, in {len(tree.below(VENV))} paths"
    return Check(name=NAME, summary=summary, findings=findings, data={"files": count})


def _failed(summary: str, what: str, *places: str) -> Check:
    return Check(name=NAME, summary=summary, findings=(Finding(code=CODE, what=what, places=places),))


def _opened(cell: Cell, folder: Path, found: Environment) -> tuple[list[Wheel], list[str]]:
    """Open the locked wheels, each hashed now: no note of an earlier hash counts. Return them, and what was wrong."""
    opened, problems = [], []
    for file, locked in cell.wheels:
        path = folder / file
        if not path.is_file():
            problems.append(f"{file} (missing)")
        elif sha256(path) != locked.sha256:
            problems.append(f"{file} (other bytes than the lock names)")
        else:
            try:
                opened.append(wheel.opened(path, name=file, site=found.site))
            except (zipfile.BadZipFile, ValueError, KeyError) as error:
                problems.append(f"{file} ({error})")
    return opened, problems


def _close(opened: Iterable[Wheel]) -> None:
    for one in opened:
        for member in one.files.values():
            member.archive.close()
            break


def _expected(tree: Tree, found: Environment, locked: list[Wheel]) -> Expected:
    names = {str(canonicalize_name(one.file.partition("-")[0])) for one in locked}
    wheels = [*locked, *environment.bundled(tree, found, locked=names)]
    files: dict[str, list[Member]] = {}
    for one in wheels:
        for path, member in one.files.items():
            files.setdefault(path, []).append(member)
    written: dict[str, set[bytes]] = {environment.CONFIGURATION: {tree.texts[environment.CONFIGURATION]}}
    written |= environment.activation(tree)
    for one in wheels:
        written |= {path: {content} for path, content in one.added.items()}
        written |= environment.commands(one.commands, found)
    records = {one.record: one for one in wheels}
    paths = {*files, *written, *found.links, *records}
    folders = parents(paths, VENV) | found.folders
    return Expected(files=files, written=written, links=found.links, records=records, folders=folders)


def _compared(tree: Tree, expected: Expected, cell: Cell) -> Iterable[Finding]:
    rows = tree.below(VENV)
    kinds = {
        "of other bytes than their wheel's": sorted(_changed(tree, rows, expected)),
        "missing": sorted(path for path in expected.paths - rows.keys() if not _pruned(path, cell)),
        "of no locked wheel": sorted(_unlisted(rows, expected)),
        "of another mode or owner": sorted(_other_mode(rows, expected)),
        "RECORD is not what pip wrote": sorted(_records(tree, rows, expected)),
    }
    for what, places in kinds.items():
        if places:
            yield Finding(code=CODE, what=what, places=tuple(places))


def _changed(tree: Tree, rows: dict[str, Row], expected: Expected) -> Iterable[str]:
    for path, members in expected.files.items():
        if path in rows and not any(member.is_installed_as(rows[path]) for member in members):
            yield path
    for path, contents in expected.written.items():
        if path in rows and not _is_written(tree, path, contents):
            yield path
    yield from (p for p, to in expected.links.items() if p in rows and not environment.is_link(rows[p], to))


def _is_written(tree: Tree, path: str, contents: set[bytes]) -> bool:
    row = tree.rows[path]
    return row.kind == "file" and any(hashlib.sha256(text).digest() == row.sha256 for text in contents)


def _pruned(path: str, cell: Cell) -> bool:
    """Return whether the recipe or its prune stage takes a file away: by the rules of these themselves."""
    if render.left_out(path):
        return True
    if not cell.prune or cell.architecture is None or prune.library_of(Path(path)) is None:
        return False
    target = target_of(path)
    return target is not None and not target.runs_on(cell.architecture)


def _unlisted(rows: dict[str, Row], expected: Expected) -> Iterable[str]:
    """Yield what no wheel brings. Byte code counts as its source's, where that is a file of a wheel."""
    listed = expected.paths
    for path, row in rows.items():
        if path in listed:
            continue
        if row.kind == "folder":
            if path not in expected.folders and not _is_cache(path, rows):
                yield path
        elif source_of(path) not in listed or row.kind != "file":
            yield path


def _is_cache(path: str, rows: dict[str, Row]) -> bool:
    """Return whether a folder is one for byte code, next to a source."""
    parent, _, name = path.rpartition("/")
    return name == CACHE and any(other.startswith(f"{parent}/") and other.endswith(".py") for other in rows)


def source_of(path: str) -> str | None:
    """Return the source that a file of byte code belongs to by its name; None for any other file."""
    pure = PurePosixPath(path)
    stem, _, tag = pure.name.removesuffix(".pyc").rpartition(".")
    if pure.suffix != ".pyc" or pure.parent.name != CACHE or not tag.startswith("cpython-"):
        return None
    return str(pure.parent.parent / f"{stem}.py")


def _other_mode(rows: dict[str, Row], expected: Expected) -> Iterable[str]:
    for path, row in rows.items():
        if row.kind == "link":
            continue
        if row.kind == "folder" or (path in expected.written and path.startswith(f"{VENV}/bin/")):
            modes = {EXECUTABLE, PLAIN} if row.kind == "file" else {EXECUTABLE}
        else:
            modes = {member.mode for member in expected.files.get(path, ())} or {PLAIN}
        if row.mode not in modes or (row.uid, row.gid) != (0, 0) or row.attributes:
            yield f"{path} ({row.mode:o} {row.uid}:{row.gid}{''.join(f' {name}' for name in row.attributes)})"


def _records(tree: Tree, rows: dict[str, Row], expected: Expected) -> Iterable[str]:
    """Yield each RECORD that leaves a file of its wheel out, lists another, or names a digest that the file lacks."""
    for path, one in expected.records.items():
        if path not in rows:
            continue
        listed = dict(wheel.recorded(tree.texts.get(path, b"").decode("utf-8", "replace")))
        at = {posixpath.normpath(posixpath.join(posixpath.dirname(one.about), name)): d for name, d in listed.items()}
        own = {*one.files, *one.added, path, *(f"{VENV}/bin/{name}" for name in one.commands)}
        extra = {name for name in at.keys() - own - one.replaced if source_of(name) not in own}
        wrong = {
            name
            for name, digest in at.items()
            if digest is not None and name in rows and source_of(name) is None and rows[name].sha256 != digest
        }
        for name in sorted((own - at.keys()) | extra | (wrong - _shared(expected))):
            yield f"{path} on {name}"


def _shared(expected: Expected) -> set[str]:
    """Return paths that several wheels bring: the last one that pip installed has them."""
    return {path for path, members in expected.files.items() if len(members) > 1}
