"""Everything of an image that is neither its environment nor its trainer: the base, and the packages on top of it.

Where the engine holds the base image, its layers have to be the image's first ones, and every file that differs from
the base has to be one that Debian's package lists bring with these bytes. Without it those lists are all there is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rocmatrix.verify.files import scripts_output
from rocmatrix.verify.files.dpkg import OF_BASES, ON_TOP, STATUS, Packages, Written, merged
from rocmatrix.verify.files.tree import TRAINER, VENV, Row, Tree
from rocmatrix.verify.finding import Check, Finding

NAME = "system"
CODE = "RM662"
OWN = re.compile(rf"({VENV}|{TRAINER})(/.*)?")
OPEN = ("/cache", "/training")  # the recipe's own, which volumes and the run folder cover
# The engine puts these into every container that it makes, whatever the image holds there.
ENGINES = re.compile(r"/(\.dockerenv|proc|sys|dev|dev/(console|pts|shm)|etc/(hosts|hostname|resolv\.conf|mtab))")
SET_ID = 0o6000  # taken from every program of the base by the recipe
LAYERS = 4  # packages, environment, trainer, working folder


@dataclass(frozen=True, kw_only=True)
class Base:
    """A base image: what it is called, its layers, its files by path, and its settings as the engine reports them."""

    name: str
    layers: tuple[str, ...]
    rows: Mapping[str, Row]
    config: Mapping[str, object]
    own: bool = False


def check(tree: Tree, layers: Sequence[str], base: Base | None) -> Check:
    """Compare with `base`, and with the package lists; with those alone where the engine does not hold the base.

    Args:
        layers: digests of the image's layers, lowest first.
    """
    rows = {path: row for path, row in tree.rows.items() if not (OWN.fullmatch(path) or ENGINES.fullmatch(path))}
    held = _of_system(base.rows) if base else {}
    packages, written = Packages(tree), _written(tree, base)
    kinds = {
        "layers that are not the base's and the recipe's": list(_layers(layers, base)),
        "not the base's and of no package": sorted(_unexplained(rows, held, packages, written)),
        "of another mode or owner than in the base": sorted(_other_mode(rows, held)),
        "of the base and missing": sorted(path for path in held.keys() - rows.keys()),
        "users of root's number, or with a password": sorted(_users(tree)),
        "libraries that the loader would take and ldconfig would not": _libraries(tree, rows, held),
        "certificates that are not the packages' own": _certificates(tree, rows, held),
    }
    findings = [Finding(code=CODE, what=what, places=tuple(places)) for what, places in kinds.items() if places]
    if not rows:
        findings.append(Finding(code="RM221", what="there is no system to look into"))
    return Check(name=NAME, summary=_summary(rows, base), findings=tuple(findings), notes=tuple(_notes(base)))


def _libraries(tree: Tree, rows: Mapping[str, Row], base: Mapping[str, Row]) -> list[str]:
    changed = scripts_output.differing([scripts_output.CACHE], rows, base)
    return sorted(scripts_output.strange_libraries(tree, rows)) if changed else []


def _certificates(tree: Tree, rows: Mapping[str, Row], base: Mapping[str, Row]) -> list[str]:
    changed = scripts_output.differing([scripts_output.BUNDLE, scripts_output.SELECTION], rows, base)
    return sorted(scripts_output.strange_certificates(tree, rows)) if changed else []


def _summary(rows: Mapping[str, Row], base: Base | None) -> str:
    return f"{len(rows)} paths, with {f'{base.name} and ' if base else ''}package lists"


def _notes(base: Base | None) -> Iterable[str]:
    if base is None:
        yield "the engine does not hold the base image: system files were compared with the image's package lists alone"
    elif not base.own:
        yield f"system files were compared with {base.name}, which is not the cell's own base"


def _of_system(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {path: row for path, row in rows.items() if not ENGINES.fullmatch(path)}


def _layers(layers: Sequence[str], base: Base | None) -> Iterable[str]:
    if base is None:
        return
    if tuple(layers[: len(base.layers)]) != base.layers:
        yield f"the first {len(base.layers)} are not those of {base.name}"
    elif len(layers) != len(base.layers) + LAYERS:
        yield f"{len(layers) - len(base.layers)} on top of {base.name}, where the recipe makes {LAYERS}"


def _written(tree: Tree, base: Base | None) -> Written:
    """Return what scripts of packages may have written: nothing, where the base had every package already."""
    if base is None:
        return {kind: (*ON_TOP[kind], *OF_BASES[kind]) for kind in ON_TOP}
    status = tree.rows.get(STATUS)
    return {} if status is not None and status == base.rows.get(STATUS) else ON_TOP


def _unexplained(
    rows: Mapping[str, Row], base: Mapping[str, Row], packages: Packages, written: Written
) -> Iterable[str]:
    places = frozenset(map(merged, base))
    for path, row in rows.items():
        if path in OPEN:
            if row.kind != "folder":
                yield path
        elif path in base and _same(row, base[path]):
            continue
        elif (path in base and _is_redirected(path, row, places, written)) or not _is_of_package(
            path, row, rows, packages, written
        ):
            yield path


def _is_redirected(path: str, row: Row, places: frozenset[str], written: Written) -> bool:
    """Return whether a link in the place of something of the base is none that a package on top makes.

    Such a package leads a link of the base to a file that it brings itself; its list holds no targets.

    Args:
        places: paths of the base as they are below /usr.
        written: what packages' scripts may write; empty where there is no package on top.
    """
    target = merged(posixpath.normpath(posixpath.join(posixpath.dirname(path), row.link)))
    return row.kind == "link" and (not written or target in places)


def _is_of_package(path: str, row: Row, rows: Mapping[str, Row], packages: Packages, written: Written) -> bool:
    if row.attributes or path.startswith(tuple(f"{folder}/" for folder in OPEN)):
        return False
    return packages.explain(path, row, rows, written=written)


def _same(row: Row, other: Row) -> bool:
    """Return whether two paths hold the same; a folder is what it holds. Mode and owner are compared apart."""
    mine = (row.kind, row.sha256, row.link, row.device, row.attributes)
    return mine == (other.kind, other.sha256, other.link, other.device, other.attributes)


def _other_mode(rows: Mapping[str, Row], base: Mapping[str, Row]) -> Iterable[str]:
    for path, row in rows.items():
        if path in OPEN:
            if (row.mode, row.uid, row.gid) != (0o1777, 0, 0):
                yield f"{path} ({row.mode:o} {row.uid}:{row.gid})"
        elif path in base and row.kind == base[path].kind and row.kind != "link":
            other = base[path]
            without = other.mode & ~SET_ID if row.kind == "file" else other.mode
            if (row.mode, row.uid, row.gid) != (without, other.uid, other.gid):
                yield f"{path} ({row.mode:o} {row.uid}:{row.gid}, not {without:o} {other.uid}:{other.gid})"


def _users(tree: Tree) -> Iterable[str]:
    """Yield users other than root that have its number, and any that could log in with a password."""
    for line in tree.lines("/etc/passwd"):
        fields = line.split(":")
        if len(fields) > 2 and fields[2].strip().lstrip("0+") == "" and fields[0] != "root":
            yield f"/etc/passwd: {fields[0]}"
        if len(fields) > 1 and fields[1] not in ("x", "*", "!"):
            yield f"/etc/passwd: {fields[0]} has a password"
    for line in tree.lines("/etc/shadow"):
        fields = line.split(":")
        if len(fields) > 1 and not fields[1].startswith(("*", "!")):
            yield f"/etc/shadow: {fields[0]} has a password"
