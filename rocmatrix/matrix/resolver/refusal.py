"""Refusal of a request: the rule behind it, and the nearest cells that work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from packaging.version import Version

from rocmatrix.matrix.matrix import Cell, Matrix, Release, Rule
from rocmatrix.matrix.resolver.request import Request, agrees, preference
from rocmatrix.runtime.errors import RocmatrixError


def refusal_of(matrix: Matrix, request: Request) -> RocmatrixError:
    """Return RM012 where a rule blocks every release asked for, RM014 where no image of one can be made, else RM011.

    Each names the nearest cells that work.
    """
    near = nearest_cells(matrix, request)
    requested = known_first(releases_of(matrix, request))
    blocking = [rule for rule in map(_blocker(matrix, request), requested) if rule is not None]
    if not requested or len(blocking) == len(requested):
        rule = blocking[0] if blocking else _unpaired(matrix, request)
        if rule is not None:
            return broken_refusal(str(request), rule, near=near, hints=_overrides(matrix, request, requested))
    if requested:
        return _without_a_base(matrix, request, requested, near)
    return RocmatrixError(
        "RM011", what=f"no release has {request}", why="no release joins these axes", next=next_step(near)
    )


def _without_a_base(matrix: Matrix, request: Request, requested: list[Release], near: Iterable[Cell]) -> RocmatrixError:
    """Return RM014: no rule excludes a release asked for, but no base brings a Python that it was built for."""
    built = "; ".join(f"{r.name} was built for {', '.join(r.pythons) or 'no Python known here'}" for r in requested[:3])
    brought = ", ".join(sorted({base.python for base in matrix.bases.values()}, key=Version))
    return RocmatrixError(
        "RM014",
        what=f"no image can be made for {request}",
        where="bases in matrix.yaml, and matrix/releases.yaml",
        why=f"{built}; bases bring Python {brought}",
        next=next_step(near),
    )


def releases_of(matrix: Matrix, request: Request) -> Iterator[Release]:
    """Yield the releases of a request, newest first."""
    kind = (release for release in reversed(matrix.releases) if (release.rocm is None) == (request.gpu == "cpu"))
    yield from (r for r in kind if agrees(request.rocm, r.rocm) and agrees(request.torch, r.torch))


def known_first(releases: Iterable[Release]) -> list[Release]:
    """Return the releases whose architectures are known, and the others only where there are none."""
    found = list(releases)
    return [release for release in found if release.architectures is not None] or found


def _blocker(matrix: Matrix, request: Request) -> Callable[[Release], Rule | None]:
    """Return the function that finds the first rule that calls a release broken on the request's card."""
    gfx = None if request.gpu == "cpu" else request.gpu

    def first(release: Release) -> Rule | None:
        rules = (rule for rule in matrix.rules_on(gfx, release) if rule.verdict == "broken" and rule.decides)
        return next(rules, None)

    return first


def _unpaired(matrix: Matrix, request: Request) -> Rule | None:
    """Return the rule that states that the ROCm and the torch of a request were never built together."""
    if request.torch is None or request.rocm is None:
        return None
    gfx, torch, rocm = request.gpu, request.torch, request.rocm
    broken = (rule for rule in (*matrix.rules, *matrix.derived_rules) if rule.verdict == "broken" and rule.decides)
    return next((rule for rule in broken if rule.when.matches(architecture=gfx, torch=torch, rocm=rocm)), None)


def broken_refusal(requested: str, rule: Rule, *, near: Iterable[Cell], hints: Iterable[str] = ()) -> RocmatrixError:
    """Return RM012 that cites a rule.

    Args:
        requested: the request as text.
        near: working cells, nearest first.
        hints: further next steps.
    """
    return RocmatrixError(
        "RM012",
        what=f"{requested}: {rule.summary}",
        where=f"rule {rule.id}",
        why=rule.evidence.summary,
        next="\n".join([*hints, next_step(near)]),
    )


def _overrides(matrix: Matrix, request: Request, requested: list[Release]) -> Iterator[str]:
    """Yield how HSA_OVERRIDE_GFX_VERSION would run the newest of the releases asked for, where it does."""
    architecture = matrix.architectures.get(request.gpu or "")
    if architecture is None:
        return
    for release in requested:
        if override := architecture.override(torch=release.torch, rocm=release.rocm):
            setting = f"HSA_OVERRIDE_GFX_VERSION={override.value}"
            instead = f"{setting} runs the code of {override.stands_in} in {release.name}"
            yield f"{instead}: {override.why} ({override.evidence.confidence})"
            return


def nearest_cells(matrix: Matrix, request: Request) -> list[Cell]:
    """Return up to three working cells of the architecture asked for that keep most of the versions asked for.

    Where the architecture has no cell: those of the one whose code an override runs on it, else the CPU's.
    """

    def kept(cell: Cell) -> int:
        same_rocm = request.rocm is not None and agrees(request.rocm, cell.release.rocm)
        same_torch = request.torch is not None and agrees(request.torch, cell.release.torch)
        return same_rocm + same_torch

    working = sorted((cell for cell in matrix.cells if not cell.broken_by), key=preference(request))
    if request.gpu is None:
        return sorted(working, key=kept, reverse=True)[:3]
    for architectures in ([request.gpu], _stand_ins(matrix, request.gpu), [None]):
        if near := [cell for cell in working if cell.architecture in architectures]:
            return sorted(near, key=kept, reverse=True)[:3]
    return []


def _stand_ins(matrix: Matrix, gpu: str) -> list[str]:
    """Return the architectures whose code runs on another by an override."""
    known = matrix.architectures.get(gpu)
    return [entry.stands_in for entry in known.overrides if entry.effect == "helps"] if known else []


def next_step(near: Iterable[Cell]) -> str:
    """Return one line for each cell that could be taken instead."""
    return "\n".join(f"--cell {cell.name}: {cell.why}" for cell in near) or "see ./invokew matrix"
