"""Resolution of a request to one cell with its explanation, or a refusal with the reason.

Pure: it sees the matrix, the request and the architectures of the cards at hand, and touches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rocmatrix.matrix import card_names
from rocmatrix.matrix.matrix import Cell, Matrix, Rule
from rocmatrix.matrix.resolver.refusal import broken_refusal, nearest_cells, next_step, refusal_of, releases_of
from rocmatrix.matrix.resolver.request import Request, agrees, fits, preference, same_version
from rocmatrix.runtime.errors import RocmatrixError, suggestion

__all__ = ["Choice", "RejectedCell", "Request", "answer", "architecture_of", "resolve", "with_hardware"]

CPU_WORDS = ("cpu", "none")


@dataclass(frozen=True, kw_only=True)
class RejectedCell:
    """A cell that would have fitted less well, and why."""

    cell: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The cell taken, its explanation, what was passed over, and the rules it was forced against.

    `unserved` is why the CPU was taken although AMD cards are there and none was named, None where it was not so;
    `unlocked` is the cell that would serve one of them, unlocked.
    """

    cell: Cell
    why: str
    passed_over: tuple[RejectedCell, ...] = ()
    forced: tuple[Rule, ...] = ()
    unserved: str | None = None
    unlocked: str | None = None


def resolve(
    matrix: Matrix,
    request: Request,
    *,
    cards: tuple[str, ...] = (),
    unusable: str | None = None,
    force: bool = False,
    allow_unlocked: bool = False,
) -> Choice:
    """Pick the best-supported cell for a request.

    Where no written cell with recorded hashes fits, one is derived. Raises RM010 for an unknown name, RM011 where axes
    contradict each other or no release joins them, RM012 when a rule calls the combination broken, RM014 where no base
    brings a Python that the release was built for.

    Args:
        cards: gfx names of the machine's cards, best first.
        unusable: what AMD card is there that serves no run, and why; None where there is none.
        force: override RM012 where the combination was built at all and a base fits it.
        allow_unlocked: a cell without recorded hashes serves a card of the machine, too.
    """
    if request.cell is not None:
        return _named(_agreeing(matrix, request), force=force)
    typed = request
    request, found = with_hardware(matrix, request, cards, unusable=unusable, allow_unlocked=allow_unlocked)
    _check_names(matrix, request)
    fitting = _candidates(matrix, request)
    working = sorted((cell for cell in fitting if not cell.broken_by), key=preference(request))
    if not working:
        refusal = refusal_of(matrix, request)
        broken = [cell for cell in fitting if cell.written] or [cell for cell in fitting if request.gpu is not None]
        if not force or refusal.code != "RM012":
            raise refusal
        if not broken:
            raise _beyond_force(refusal)
        return _forced(min(broken, key=preference(request)))
    best, *others = working
    named = (cell for cell in others if cell.written or cell.architecture == best.architecture)
    passed = tuple(RejectedCell(cell=cell.name, why=_why_less(cell, best)) for cell in named)
    cpu_instead = request.gpu == "cpu" and _is_open(typed) and bool(cards or unusable)
    return Choice(
        cell=best,
        why=f"{found}{_merits(best)}",
        passed_over=passed,
        unserved=found.removesuffix("; ") if cpu_instead else None,
        unlocked=_unlocked(matrix, typed, cards) if cpu_instead else None,
    )


def _is_open(request: Request) -> bool:
    """Return whether a request leaves card and kind of build to this machine."""
    return (request.gpu or "auto").strip().casefold() == "auto" and request.rocm not in CPU_WORDS


def answer(
    matrix: Matrix, request: Request, cards: tuple[str, ...] = (), *, unusable: str | None = None
) -> tuple[Choice, None] | tuple[None, RocmatrixError]:
    """Return what a request resolves to, or its refusal. Raises RM010.

    Args:
        cards: gfx names of the machine's cards, best first.
        unusable: what AMD card is there that serves no run, and why; None where there is none.
    """
    try:
        return resolve(matrix, request, cards=cards, unusable=unusable), None
    except RocmatrixError as error:
        if error.code == "RM010":
            raise
        return None, error


def architecture_of(matrix: Matrix, name: str) -> str:
    """Return the gfx name for a gfx name or a card people know, such as "RX 7900 XT". Raises RM010."""
    return card_names.architecture_of(matrix.architectures, name)


def _agreeing(matrix: Matrix, request: Request) -> Cell:
    """Return the cell asked for by name. Raises RM010 for an unknown name, RM011 where another axis contradicts it."""
    cell = matrix.cell(str(request.cell))
    others, _ = with_hardware(matrix, request, ())
    _check_names(matrix, others)
    if not fits(cell, replace(others, gpu=None) if _is_open(request) else others):
        why = f"{cell.name} is {_axes(cell)}"
        leave = f"leave out one of them\n{next_step([cell])}"
        raise RocmatrixError("RM011", what=f"{request} contradict each other", why=why, next=leave)
    return cell


def _axes(cell: Cell) -> str:
    release = cell.release
    rocm = f"ROCm {release.rocm} on {cell.architecture}" if release.rocm else "the CPU build"
    return f"{rocm}, torch {release.torch}, Python {cell.python}"


def _named(cell: Cell, *, force: bool) -> Choice:
    if cell.broken_by and force:
        return _forced(cell)
    if cell.broken_by:
        raise broken_refusal(cell.name, cell.broken_by[0], near=())
    return Choice(cell=cell, why=f"asked for by name: {cell.why}")


def _forced(cell: Cell) -> Choice:
    return Choice(cell=cell, why=f"forced; {cell.why}", forced=cell.broken_by)


def _beyond_force(refusal: RocmatrixError) -> RocmatrixError:
    advice = "--force has nothing to build: there is no such release, no card is named, or no base has its Python"
    return RocmatrixError(
        refusal.code, what=refusal.what, where=refusal.where, why=refusal.why, next=f"{advice}\n{refusal.next}"
    )


def _candidates(matrix: Matrix, request: Request) -> list[Cell]:
    """Return the written cells that fit, and those derived next to them where no written one can be built and works."""
    written = [cell for cell in matrix.cells if fits(cell, request)]
    if any(not (cell.broken_by or cell.unlocked_because) for cell in written):
        return written
    names = {cell.name for cell in written}
    return [*written, *(cell for cell in _derived(matrix, request) if cell.name not in names)]


def _derived(matrix: Matrix, request: Request) -> Iterator[Cell]:
    """Yield the cell of every release asked for, on the architecture asked for or on all that it holds code for."""
    order = dict.fromkeys((*(cell.architecture for cell in matrix.cells), *matrix.architectures))
    if request.gpu not in (None, "cpu", *matrix.architectures):  # a card of this machine that nothing is known of
        return
    for release in releases_of(matrix, request):
        held = release.architectures or ()
        architectures = [None] if release.rocm is None else [gfx for gfx in order if gfx in held]
        for architecture in architectures if request.gpu in (None, "cpu") else [request.gpu]:
            cell = matrix.derived(architecture, release, python=request.python)
            if cell is not None:
                yield cell


def with_hardware(
    matrix: Matrix,
    request: Request,
    cards: tuple[str, ...],
    *,
    unusable: str | None = None,
    allow_unlocked: bool = False,
) -> tuple[Request, str]:
    """Fill in the architecture: the one named, else this machine's card, else CPU if all is open.

    Args:
        cards: gfx names of the machine's cards, best first.
        unusable: what AMD card is there that serves no run, and why; None where there is none.
        allow_unlocked: a cell without recorded hashes serves a card of the machine, too.
    """
    requested = request.gpu.strip().casefold() if request.gpu else None
    if requested in CPU_WORDS or request.rocm in CPU_WORDS:
        _require_one_kind(matrix, request, requested)
        return replace(request, gpu="cpu", rocm=None), ""
    if requested not in (None, "auto"):
        return replace(request, gpu=architecture_of(matrix, str(request.gpu))), ""
    if cards:
        filled, found = _for_these_cards(matrix, request, cards, allow_unlocked=allow_unlocked)
        return filled, f"{found}{unusable}; " if unusable else found
    none = unusable or "no AMD card was found"
    if request.rocm is None and request.torch is None:
        return replace(request, gpu="cpu"), f"{none}; "
    return replace(request, gpu=None), f"{none}, so the best-supported architecture was taken; "


def _require_one_kind(matrix: Matrix, request: Request, requested: str | None) -> None:
    """Raise RM011 where a request names the CPU on one axis and a card, or a ROCm, on the other."""
    if {requested, request.rocm} - {None, "auto", *CPU_WORDS}:
        card = replace(request, gpu=None if requested in CPU_WORDS else architecture_of(matrix, str(request.gpu)))
        open_axes = replace(card, rocm=None if request.rocm in CPU_WORDS else request.rocm)
        near = next_step(nearest_cells(matrix, open_axes))
        raise RocmatrixError("RM011", what=f"{request} contradict each other", next=f"leave out one of them\n{near}")


def _for_these_cards(
    matrix: Matrix, request: Request, cards: tuple[str, ...], *, allow_unlocked: bool
) -> tuple[Request, str]:
    """Take the best card that a locked, working cell serves. Where none does: the CPU, or the best card known if a
    ROCm or a torch was asked for, whose refusal then gives the reason."""
    served = (card for card in cards if _serves(matrix, replace(request, gpu=card)))
    usable = next(served, None)
    if usable is None and allow_unlocked:
        usable = next((card for card in cards if _unlocked(matrix, request, (card,))), None)
    if usable is not None:
        return replace(request, gpu=usable), f"this machine has a {usable}; "
    if request.rocm is None and request.torch is None:
        none = f"this machine's {', '.join(dict.fromkeys(cards))} has no locked cell that works"
        return replace(request, gpu="cpu"), f"{none}; "
    known = [card for card in cards if card in matrix.architectures]
    gfx = known[0] if known else architecture_of(matrix, cards[0])
    return replace(request, gpu=gfx), f"this machine has a {gfx}; "


def _unlocked(matrix: Matrix, request: Request, cards: tuple[str, ...]) -> str | None:
    """Return the unlocked cell that would serve the best card, at one's own risk; None where every cell is broken."""
    for card in dict.fromkeys(cards):
        of_card = replace(request, gpu=card)
        working = [cell for cell in _candidates(matrix, of_card) if not cell.broken_by]
        if working:
            return min(working, key=preference(of_card)).name
    return None


def _serves(matrix: Matrix, request: Request) -> bool:
    return any(not (cell.broken_by or cell.unlocked_because) for cell in _candidates(matrix, request))


def _check_names(matrix: Matrix, request: Request) -> None:
    rocm = [release.rocm for release in matrix.releases if release.rocm]
    torch = [release.torch for release in matrix.releases]
    python = [version for release in matrix.releases for version in release.pythons]
    axes = (
        ("ROCm", request.rocm, rocm, agrees),
        ("torch", request.torch, torch, agrees),
        ("Python", request.python, python, same_version),
    )
    for axis, requested, known, is_one in axes:
        if requested is not None and not any(is_one(requested, version) for version in known):
            hint = suggestion(requested, list(dict.fromkeys(known)))
            raise RocmatrixError("RM010", what=f"no release has {axis} {requested!r}", next=hint)


def _merits(cell: Cell) -> str:
    marks = ["recommended for its architecture"] if cell.recommended else []
    marks += ["AMD lists cards of it for this ROCm"] if cell.official else []
    return "; ".join([", ".join(marks), cell.why] if marks else [cell.why])


def _why_less(cell: Cell, best: Cell) -> str:
    if cell.unlocked_because and not best.unlocked_because:
        return f"unlocked: {cell.unlocked_because}"
    if best.official and not cell.official:
        return f"AMD lists no card of {cell.architecture} for ROCm {cell.release.rocm}"
    if best.recommended and not cell.recommended:
        return "not the recommended cell of its architecture"
    if cell.architecture != best.architecture:
        return f"for {cell.architecture}; name it with --gpu {cell.architecture}"
    if cell.release != best.release:
        return f"older: torch {cell.release.torch}, ROCm {cell.release.rocm}"
    return "; ".join(rule.reason for rule in cell.rules if rule.verdict == "degraded" and rule.decides)
