"""From what a person asks for to one cell, with the argument for it, or a refusal that says why.

Pure: it sees the matrix, the request and the architectures of the cards at hand, and touches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from packaging.version import InvalidVersion, Version

from rocmatrix.errors import RocmatrixError, suggestion
from rocmatrix.matrix import Cell, Matrix, Rule

CPU_WORDS = ("cpu", "none")
_MAKER_WORDS = re.compile(r"\b(amd|radeon|instinct|ryzen|graphics)\b|[^a-z0-9+]+")


@dataclass(frozen=True, kw_only=True)
class Request:
    """The axes a person named; None leaves an axis open. `gpu` is a gfx name, a card or `auto`."""

    rocm: str | None = None
    torch: str | None = None
    gpu: str | None = None
    cell: str | None = None

    def __str__(self) -> str:
        given = [f"--{axis} {value}" for axis, value in vars(self).items() if value is not None]
        return " ".join(given) or "nothing in particular"


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """A cell that would have fitted less well, and why."""

    cell: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The cell taken, the argument for it, and what was passed over."""

    cell: Cell
    why: str
    passed_over: tuple[PassedOver, ...] = ()


def resolve(matrix: Matrix, request: Request, *, cards: tuple[str, ...] = ()) -> Choice:
    """Pick the best-supported cell for a request.

    `cards` are the gfx names of the machine's cards, best first. Raises RM010 for an unknown name,
    RM011 when no cell combines the axes, RM012 when a rule calls the combination broken.
    """
    if request.cell is not None:
        return _named(matrix.cell(request.cell))
    request, found = _with_hardware(matrix, request, cards)
    _check_names(matrix, request)
    fitting = [cell for cell in matrix.cells if _fits(cell, request)]
    working = sorted((cell for cell in fitting if not cell.broken_by), key=_preference(request))
    if not working:
        raise _refusal(matrix, request)
    best, *others = working
    passed = tuple(PassedOver(cell=cell.name, why=_why_less(cell, best)) for cell in others)
    return Choice(cell=best, why=f"{found}{_merits(best)}", passed_over=passed)


def architecture_of(matrix: Matrix, name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT". Raises RM010."""
    if name in matrix.architectures:
        return name
    wanted = _folded(name)
    by_card = {_folded(card): gfx for gfx, entry in matrix.architectures.items() for card in entry.cards}
    if wanted in by_card:
        return by_card[wanted]
    known = [
        *matrix.architectures,
        *(card for entry in matrix.architectures.values() for card in entry.cards),
    ]
    hint = suggestion(name, known)
    raise RocmatrixError("RM010", what=f"no card or architecture is known as {name!r}", next=hint)


def _named(cell: Cell) -> Choice:
    if cell.broken_by:
        raise _broken(cell.name, cell.broken_by[0], near=())
    return Choice(cell=cell, why=f"asked for by name: {cell.why}")


def _with_hardware(matrix: Matrix, request: Request, cards: tuple[str, ...]) -> tuple[Request, str]:
    """Fill in the architecture: the one named, else this machine's card, else CPU if all is open."""
    if request.gpu in CPU_WORDS or request.rocm in CPU_WORDS:
        return replace(request, gpu="cpu", rocm=None), ""
    if request.gpu not in (None, "auto"):
        return replace(request, gpu=architecture_of(matrix, str(request.gpu))), ""
    if cards:
        known = [card for card in cards if card in matrix.architectures]
        gfx = known[0] if known else architecture_of(matrix, cards[0])
        return replace(request, gpu=gfx), f"this machine has a {gfx}; "
    if request.rocm is None and request.torch is None:
        return replace(request, gpu="cpu"), "no AMD card was found; "
    return replace(request, gpu=None), "no AMD card was found, so the best-supported architecture was taken; "


def _check_names(matrix: Matrix, request: Request) -> None:
    rocm = [release.rocm for release in matrix.releases if release.rocm]
    torch = [release.torch for release in matrix.releases]
    for axis, wanted, known in (("ROCm", request.rocm, rocm), ("torch", request.torch, torch)):
        if wanted is not None and not any(_same(wanted, version) for version in known):
            hint = suggestion(wanted, list(dict.fromkeys(known)))
            raise RocmatrixError("RM010", what=f"no release has {axis} {wanted!r}", next=hint)


def _fits(cell: Cell, request: Request) -> bool:
    if request.gpu == "cpu" and cell.architecture is not None:
        return False
    if request.gpu not in (None, "cpu") and cell.architecture != request.gpu:
        return False
    release = cell.release
    return _same(request.rocm, release.rocm) and _same(request.torch, release.torch)


def _same(wanted: str | None, version: str | None) -> bool:
    if wanted is None or version is None:
        return wanted is None
    try:
        return Version(wanted) == Version(version)
    except InvalidVersion:
        return False


Rank = tuple[tuple[bool, bool], list[int], bool]


def _preference(request: Request) -> Callable[[Cell], Rank]:
    """Return the sort key, best first; the file's order breaks ties.

    On one architecture this project's recommendation leads. Where the architecture is open, AMD's own
    list leads: a person with no card at hand wants the one that most can run.
    """

    def rank(cell: Cell) -> Rank:
        marks = (not cell.recommended, not cell.official)
        release = cell.release
        newest = [-part for part in Version(release.rocm or "0").release + Version(release.torch).release]
        return (marks if request.gpu else marks[::-1]), newest, _degraded(cell)

    return rank


def _degraded(cell: Cell) -> bool:
    return any(rule.verdict in ("degraded", "untested") for rule in cell.rules)


def _merits(cell: Cell) -> str:
    marks = ["recommended for its architecture"] if cell.recommended else []
    marks += ["on AMD's list for this ROCm"] if cell.official else []
    return "; ".join([", ".join(marks), cell.why] if marks else [cell.why])


def _why_less(cell: Cell, best: Cell) -> str:
    if best.official and not cell.official:
        return f"AMD does not list {cell.architecture} for ROCm {cell.release.rocm}"
    if best.recommended and not cell.recommended:
        return "not the recommended cell of its architecture"
    if _degraded(cell) and not _degraded(best):
        return "; ".join(rule.reason for rule in cell.rules if rule.verdict != "works")
    if cell.architecture != best.architecture:
        return f"for {cell.architecture}; name it with --gpu {cell.architecture}"
    return f"older: torch {cell.release.torch}, ROCm {cell.release.rocm}"


def _refusal(matrix: Matrix, request: Request) -> RocmatrixError:
    near = _nearest_cells(matrix, request)
    rule = next(iter(_blocking(matrix, request)), None)
    if rule is not None:
        return _broken(str(request), rule, near=near)
    return RocmatrixError(
        "RM011",
        what=f"no cell has {request}",
        why="the releases are there, but no cell joins them to this architecture",
        next=_advice(near),
    )


def _broken(asked: str, rule: Rule, *, near: Iterable[Cell]) -> RocmatrixError:
    source = f"{rule.evidence.confidence} {rule.evidence.date}: {', '.join(rule.evidence.sources)}"
    return RocmatrixError(
        "RM012",
        what=f"{asked}: {rule.reason}",
        where=f"rule {rule.id} of matrix.yaml",
        why=source,
        next=_advice(near),
    )


def _blocking(matrix: Matrix, request: Request) -> Iterable[Rule]:
    """Yield the rules that call every release of the request broken on its architecture."""
    gfx = None if request.gpu == "cpu" else request.gpu
    for release in matrix.releases:
        if _same(request.rocm, release.rocm) and _same(request.torch, release.torch):
            for rule in matrix.rules:
                axes = {"architecture": gfx, "torch": release.torch, "rocm": release.rocm}
                if rule.verdict == "broken" and rule.when.matches(**axes):  # type: ignore[arg-type]
                    yield rule


def _nearest_cells(matrix: Matrix, request: Request) -> list[Cell]:
    """Return up to three working cells that keep most of what was asked, the architecture first."""

    def kept(cell: Cell) -> int:
        same_rocm = request.rocm is not None and _same(request.rocm, cell.release.rocm)
        same_torch = request.torch is not None and _same(request.torch, cell.release.torch)
        return 3 * (cell.architecture == request.gpu) + same_rocm + same_torch

    working = sorted((cell for cell in matrix.cells if not cell.broken_by), key=_preference(request))
    own = [cell for cell in working if cell.architecture == request.gpu]
    return sorted(own or working, key=kept, reverse=True)[:3]


def _advice(near: Iterable[Cell]) -> str:
    return "\n".join(f"--cell {cell.name}: {cell.why}" for cell in near) or "see ./invokew matrix"


def _folded(name: str) -> str:
    return _MAKER_WORDS.sub("", name.casefold())
