"""From what a person asks for to one cell, with the argument for it, or a refusal that says why.

Pure: it sees the matrix, the request and the architectures of the cards at hand, and touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from rocmatrix import cards as naming
from rocmatrix.errors import RocmatrixError, suggestion
from rocmatrix.matrix import Cell, Matrix, Release, Rule

CPU_WORDS = ("cpu", "none")


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
    """The cell taken, the argument for it, what was passed over, and the rules it was forced against."""

    cell: Cell
    why: str
    passed_over: tuple[PassedOver, ...] = ()
    forced: tuple[Rule, ...] = ()


def resolve(matrix: Matrix, request: Request, *, cards: tuple[str, ...] = (), force: bool = False) -> Choice:
    """Pick the best-supported cell for a request.

    `cards` are the gfx names of the machine's cards, best first. `force` overrides RM012 where the combination was
    built at all and a base fits it, if need be with a cell that the matrix lacks. Raises RM010 for an unknown name,
    RM011 when no cell combines the axes, RM012 when a rule calls the combination broken.
    """
    if request.cell is not None:
        return _named(matrix.cell(request.cell), force=force)
    request, found = with_hardware(matrix, request, cards)
    _check_names(matrix, request)
    fitting = [cell for cell in matrix.cells if _fits(cell, request)]
    working = sorted((cell for cell in fitting if not cell.broken_by), key=_preference(request))
    if not working:
        refusal = _refusal(matrix, request)
        broken = fitting or _improvised(matrix, request)
        if not force or refusal.code != "RM012":
            raise refusal
        if not broken:
            raise _beyond_force(refusal)
        return _forced(min(broken, key=_preference(request)))
    best, *others = working
    passed = tuple(PassedOver(cell=cell.name, why=_why_less(cell, best)) for cell in others)
    return Choice(cell=best, why=f"{found}{_merits(best)}", passed_over=passed)


def architecture_of(matrix: Matrix, name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT". Raises RM010."""
    return naming.architecture_of(matrix.architectures, name)


def _named(cell: Cell, *, force: bool) -> Choice:
    if cell.broken_by and force:
        return _forced(cell)
    if cell.broken_by:
        raise _broken(cell.name, cell.broken_by[0], near=())
    return Choice(cell=cell, why=f"asked for by name: {cell.why}")


def _forced(cell: Cell) -> Choice:
    return Choice(cell=cell, why=f"forced; {cell.why}", forced=cell.broken_by)


def _beyond_force(refusal: RocmatrixError) -> RocmatrixError:
    advice = "--force has nothing to build: there is no such release, no card is named, or no base has its Python"
    return RocmatrixError(
        refusal.code, what=refusal.what, where=refusal.where, why=refusal.why, next=f"{advice}\n{refusal.next}"
    )


def _improvised(matrix: Matrix, request: Request) -> list[Cell]:
    """Return a cell for every release asked for, where the request names a card and the matrix has no cell."""
    if request.gpu is None or request.gpu not in matrix.architectures:
        return []
    made = (matrix.improvised(request.gpu, release) for release in releases_of(matrix, request))
    return [cell for cell in made if cell is not None and cell.broken_by]


def with_hardware(matrix: Matrix, request: Request, cards: tuple[str, ...]) -> tuple[Request, str]:
    """Fill in the architecture: the one named, else this machine's card, else CPU if all is open."""
    asked = request.gpu.strip().casefold() if request.gpu else None
    if asked in CPU_WORDS or request.rocm in CPU_WORDS:
        return replace(request, gpu="cpu", rocm=None), ""
    if asked not in (None, "auto"):
        known_name = asked if asked in matrix.architectures else str(request.gpu)
        return replace(request, gpu=architecture_of(matrix, known_name)), ""
    if cards and (asked, request.rocm, request.torch) == (None, None, None):
        return _for_these_cards(matrix, request, cards)
    if cards:
        known = [card for card in cards if card in matrix.architectures]
        gfx = known[0] if known else architecture_of(matrix, cards[0])
        return replace(request, gpu=gfx), f"this machine has a {gfx}; "
    if request.rocm is None and request.torch is None:
        return replace(request, gpu="cpu"), "no AMD card was found; "
    return replace(request, gpu=None), "no AMD card was found, so the best-supported architecture was taken; "


def _for_these_cards(matrix: Matrix, request: Request, cards: tuple[str, ...]) -> tuple[Request, str]:
    """Take the best card that a locked, working cell serves; where none does, the CPU, and say so."""
    served = {cell.architecture for cell in matrix.cells if not cell.broken_by and not cell.unlocked_because}
    usable = next((card for card in cards if card in served), None)
    if usable is None:
        return replace(request, gpu="cpu"), f"this machine's {', '.join(cards)} has no locked cell that works; "
    return replace(request, gpu=usable), f"this machine has a {usable}; "


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


@lru_cache(maxsize=4096)  # the same few versions are compared for every release and cell
def _same(wanted: str | None, version: str | None) -> bool:
    if wanted is None or version is None:
        return wanted is None
    try:
        return Version(wanted) == Version(version)
    except InvalidVersion:
        return False


Rank = tuple[bool, tuple[bool, bool], list[int], bool]


def _preference(request: Request) -> Callable[[Cell], Rank]:
    """Return the sort key, best first; the file's order breaks ties.

    A cell that can be built from checked wheels comes before one that cannot. On one architecture this
    project's recommendation leads. Where the architecture is open, AMD's own list leads: a person with no
    card at hand wants the one that most can run.
    """

    def rank(cell: Cell) -> Rank:
        marks = (not cell.recommended, not cell.official)
        release = cell.release
        newest = [-part for part in Version(release.rocm or "0").release + Version(release.torch).release]
        unlocked = cell.unlocked_because is not None
        return unlocked, (marks if request.gpu else marks[::-1]), newest, cell.verdict == "degraded"

    return rank


def _merits(cell: Cell) -> str:
    marks = ["recommended for its architecture"] if cell.recommended else []
    marks += ["on AMD's list for this ROCm"] if cell.official else []
    return "; ".join([", ".join(marks), cell.why] if marks else [cell.why])


def _why_less(cell: Cell, best: Cell) -> str:
    if cell.unlocked_because and not best.unlocked_because:
        return f"unlocked: {cell.unlocked_because}"
    if best.official and not cell.official:
        return f"AMD does not list {cell.architecture} for ROCm {cell.release.rocm}"
    if best.recommended and not cell.recommended:
        return "not the recommended cell of its architecture"
    if cell.architecture != best.architecture:
        return f"for {cell.architecture}; name it with --gpu {cell.architecture}"
    if cell.release != best.release:
        return f"older: torch {cell.release.torch}, ROCm {cell.release.rocm}"
    return "; ".join(rule.reason for rule in cell.rules if rule.verdict == "degraded" and rule.decides)


def _refusal(matrix: Matrix, request: Request) -> RocmatrixError:
    near = _nearest_cells(matrix, request)
    asked = list(releases_of(matrix, request))
    blocking = [rule for rule in map(_blocker(matrix, request), asked) if rule is not None]
    if not asked or len(blocking) == len(asked):
        rule = blocking[0] if blocking else _unpaired(matrix, request)
        if rule is not None:
            return _broken(str(request), rule, near=near, hints=_overrides(matrix, request, asked))
    return RocmatrixError(
        "RM011",
        what=f"no cell has {request}",
        why="nothing is known to break it, but no cell joins these axes" if asked else "no release joins these axes",
        next=_advice(near),
    )


def releases_of(matrix: Matrix, request: Request) -> Iterator[Release]:
    """Yield the releases of a request, newest first."""
    kind = (release for release in reversed(matrix.releases) if (release.rocm is None) == (request.gpu == "cpu"))
    yield from (r for r in kind if _same(request.rocm, r.rocm) and _same(request.torch, r.torch))


def _blocker(matrix: Matrix, request: Request) -> Callable[[Release], Rule | None]:
    """Return the function that finds the first rule that calls a release broken on the request's card."""
    gfx = None if request.gpu == "cpu" else request.gpu

    def first(release: Release) -> Rule | None:
        rules = (rule for rule in matrix.rules_on(gfx, release) if rule.verdict == "broken" and rule.decides)
        return next(rules, None)

    return first


def _unpaired(matrix: Matrix, request: Request) -> Rule | None:
    """Return the rule that says that the ROCm and the torch of a request were never built together."""
    if request.torch is None or request.rocm is None:
        return None
    gfx, torch, rocm = request.gpu, request.torch, request.rocm
    broken = (rule for rule in (*matrix.rules, *matrix.derived_rules) if rule.verdict == "broken" and rule.decides)
    return next((rule for rule in broken if rule.when.matches(architecture=gfx, torch=torch, rocm=rocm)), None)


def _broken(asked: str, rule: Rule, *, near: Iterable[Cell], hints: Iterable[str] = ()) -> RocmatrixError:
    return RocmatrixError(
        "RM012",
        what=f"{asked}: {rule.words}",
        where=f"rule {rule.id}",
        why=rule.evidence.words,
        next="\n".join([*hints, _advice(near)]),
    )


def _overrides(matrix: Matrix, request: Request, asked: list[Release]) -> Iterator[str]:
    """Yield how HSA_OVERRIDE_GFX_VERSION would run the newest of the releases asked for, where it does."""
    architecture = matrix.architectures.get(request.gpu or "")
    if architecture is None:
        return
    for release in asked:
        if override := architecture.override(torch=release.torch, rocm=release.rocm):
            setting = f"HSA_OVERRIDE_GFX_VERSION={override.value}"
            instead = f"{setting} runs the code of {override.stands_in} in {release.name}"
            yield f"{instead}: {override.why} ({override.evidence.confidence})"
            return


def _nearest_cells(matrix: Matrix, request: Request) -> list[Cell]:
    """Return up to three working cells that keep most of what was asked, the architecture first.

    Where the architecture has no cell: those of the one whose code an override runs on it, else the CPU's.
    """

    def kept(cell: Cell) -> int:
        same_rocm = request.rocm is not None and _same(request.rocm, cell.release.rocm)
        same_torch = request.torch is not None and _same(request.torch, cell.release.torch)
        same_card = request.gpu is not None and cell.architecture == request.gpu
        return 3 * same_card + same_rocm + same_torch

    working = sorted((cell for cell in matrix.cells if not cell.broken_by), key=_preference(request))
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


def _advice(near: Iterable[Cell]) -> str:
    return "\n".join(f"--cell {cell.name}: {cell.why}" for cell in near) or "see ./invokew matrix"
