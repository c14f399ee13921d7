"""The axes that a request left open: what was chosen for each, and what is known of the releases next to the choice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rocmatrix.matrix.matrix import Cell, Matrix, Release, Rule
from rocmatrix.matrix.naming import versions
from rocmatrix.matrix.resolver.refusal import known_first, releases_of
from rocmatrix.matrix.resolver.request import Request, agrees, is_open, is_series, same_version
from rocmatrix.matrix.resolver.resolve import answer
from rocmatrix.runtime.errors import RocmatrixError

_PYTHON = re.compile(r"3\.\d{1,2}t?")
CPU_WORDS = ("cpu", "none")


@dataclass(frozen=True, kw_only=True)
class ChosenAxis:
    """An axis that the request left open, the value taken for it, and why."""

    axis: str
    value: str
    why: str


def checked_python(text: str | None) -> str | None:
    """Return a Python version such as 3.12, or 3.13t for a free-threaded build. Raises RM404 for anything else."""
    if text is not None and not _PYTHON.fullmatch(text):
        raise RocmatrixError("RM404", what=f"--python takes a version such as 3.12, or 3.13t, not {text!r}")
    return text


def built_for(release: Release, python: str) -> bool:
    """Return whether a release has wheels for a Python; 3.13t is the free-threaded build of 3.13."""
    return python.removesuffix("t") in (release.free_threaded if python.endswith("t") else release.pythons)


def chosen(
    matrix: Matrix,
    request: Request,
    *,
    architecture: str | None,
    release: Release | None,
    cell: Cell | None,
    found: str,
) -> Iterator[ChosenAxis]:
    """Yield every axis that was left open. `found` states what this machine's cards decided, `cell` what was taken.

    Args:
        architecture: gfx name that was taken; None for the CPU.
        found: text on what this machine's cards decided.
    """
    if release is None or request.cell is not None:
        return
    if request.gpu in (None, "auto") and request.rocm not in CPU_WORDS:
        words = found.strip("; ") or "no card is named, and the axes fit no single one"
        yield ChosenAxis(axis="gpu", value=architecture or ("cpu" if cell else "none"), why=words)
    taken = cell is not None and cell.written
    why = f"the axis of {cell.name}: {cell.why}" if cell and taken else _newest(matrix, request, architecture, release)
    if is_open(request.rocm) and release.rocm is not None:
        yield ChosenAxis(axis="rocm", value=release.rocm, why=_of_series(request.rocm, why))
    elif request.rocm_release is not None:
        named = f"ROCm {request.rocm_release} has no wheels of its own: those for {request.rocm} serve it"
        yield ChosenAxis(axis="rocm", value=str(request.rocm), why=named)
    if is_open(request.torch):
        yield ChosenAxis(axis="torch", value=release.torch, why=_of_series(request.torch, why))


def _of_series(version: str | None, why: str) -> str:
    return f"{version} names a series; {why}" if is_series(version) else why


def _newest(matrix: Matrix, request: Request, architecture: str | None, release: Release) -> str:
    """Return why a release stands for a request that no written cell fits."""
    passed, words = [], "the newest release with the other axes"
    for newer in known_first(releases_of(matrix, _open(request, architecture))):
        if newer == release:
            break
        broken = (rule for rule in matrix.rules_on(architecture, newer) if rule.verdict == "broken" and rule.decides)
        against = [f"{newer.name} (rule {rule.id})" for rule in broken][:1]
        passed += against
        words = words if against else "the newest release with the other axes, with recorded hashes,"
    if not passed:
        return words.rstrip(",")
    more = f" and {len(passed) - 3} more" if len(passed) > 3 else ""
    return f"{words} that no rule calls broken; not {', '.join(passed[:3])}{more}"


def _open(request: Request, architecture: str | None) -> Request:
    cpu = architecture is None and request.rocm in (None, *CPU_WORDS)
    return Request(rocm=None if cpu else request.rocm, torch=request.torch, gpu="cpu" if cpu else architecture)


def neighbours(
    matrix: Matrix, *, architecture: str | None, release: Release | None, allowed: Iterable[Release] = ()
) -> Iterator[tuple[Release, Rule]]:
    """Yield the rules that judge a release next to the one argued about, and not that one itself.

    Next to it are its patch releases for the same ROCm, and the others that the request would have allowed.

    Args:
        architecture: gfx name; None for the CPU.
        allowed: releases that the request would have allowed.
    """
    if release is None or architecture is None:
        return
    own = {rule.id for rule in matrix.rules_on(architecture, release)}
    same_minor = [r for r in matrix.releases if r.rocm == release.rocm and _minor(r) == _minor(release)]
    for other in dict.fromkeys(r.name for r in (*same_minor, *allowed) if r.name != release.name):
        found = matrix.release_by_name[other]
        written = (rule for rule in matrix.rules if rule.decides and rule.verdict != "untested")
        applying = (
            rule for rule in written if rule.when.matches(architecture=architecture, torch=found.torch, rocm=found.rocm)
        )
        yield from ((found, rule) for rule in applying if rule.id not in own)


def _minor(release: Release) -> list[str]:
    return release.torch.split(".")[:2]


def python_reason(matrix: Matrix, release: Release, python: str, *, cell: Cell | None) -> str:
    """Return what a Python comes to: who built for it, and whether its wheels are locked.

    Args:
        python: version, such as "3.12".
    """
    built = (
        ", ".join((*release.pythons, *(f"{version}t" for version in release.free_threaded))) or "no Python known here"
    )
    if not built_for(release, python):
        others = [r for r in reversed(matrix.releases) if r.rocm and built_for(r, python)]
        newest = f"; {others[0].name} was built for it" if others and release.rocm else ""
        return f"{release.name} has no wheel for Python {python}: it was built for {built}{newest}"
    if cell is None:
        return f"{release.name} was built for Python {built}; no cell holds it"
    if cell.python == python:
        return f"the image of {cell.name} has Python {python}"
    locked = "are locked, for a native run" if matrix.for_python(cell, python) else "are not locked"
    return (
        f"{release.name} was built for Python {built}; {cell.name} has {cell.python}, and wheels for {python} {locked}"
    )


def recorded(matrix: Matrix, request: Request, cards: tuple[str, ...]) -> tuple[Request, tuple[str, ...]]:
    """Return a request without the versions that no release has, and these.

    They are left out where every release of the rest is broken: a ROCm before the first one here then needs no record
    of its own. A torch before its release counts as that one. The request is unchanged where a version was released and
    is not recorded, and nothing is returned next to it where it is unknown: then it is refused.

    Args:
        cards: gfx names of the machine's cards, best first.
    """
    rocm = _unknown(request.rocm, [release.rocm for release in matrix.releases])
    torch = _unknown(request.torch, [release.torch for release in matrix.releases])
    no_card = (request.gpu or "auto").strip().casefold() in ("auto", *CPU_WORDS)
    if not (rocm or torch) or no_card or request.rocm in CPU_WORDS:
        return request, ()
    named = tuple(f"{name} {version}" for name, version in (("ROCm", rocm), ("torch", torch)) if version)
    rest = replace(request, rocm=None if rocm else request.rocm, torch=None if torch else request.torch)
    if answer(matrix, rest, cards)[1] is not None:
        return rest, named
    if rocm is None and torch is not None and (release := versions.before_release(torch)):
        return _of_release(matrix, request, release), named
    return request, named if _existed(matrix, rocm, torch) else ()


def _of_release(matrix: Matrix, request: Request, release: str) -> Request:
    """Return a request for a build before a release as one for that release, or for any torch where it has none."""
    of_release = replace(request, torch=release)
    found = any(same_version(release, each.torch) and agrees(request.rocm, each.rocm) for each in matrix.releases)
    return of_release if found else replace(request, torch=None)


def _existed(matrix: Matrix, rocm: str | None, torch: str | None) -> bool:
    """Return whether versions that no release here has were released: older ones, and TheRock's previews."""
    old = rocm is None or versions.precedes(rocm, [each.rocm for each in matrix.releases if each.rocm])
    preview = rocm is not None and any(same_version(rocm, each) for each in _previews(rocm))
    before = torch is None or bool(versions.before_release(torch))
    return (old or preview) and (before or versions.precedes(str(torch), [each.torch for each in matrix.releases]))


def _previews(rocm: str) -> tuple[str, ...]:
    """Return TheRock's previews with the patch number of `rocm`: 7.13 is 7.13.0 and 7.13.1."""
    patch = ".".join(rocm.split(".")[2:])
    return tuple(f"{each}.{patch}" if patch else each for each in versions.PREVIEWS)


def _unknown(version: str | None, known: list[str | None] | list[str]) -> str | None:
    """Return a version that none of these equals, None where one does, or where it is open."""
    return None if version is None or any(agrees(version, other) for other in known) else version
