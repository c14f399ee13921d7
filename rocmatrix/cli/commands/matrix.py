"""Commands that show the matrix: cells, the explanation of a choice, the grid, what is outdated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import hardware_here, known_matrix, print_json, today
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Axes
from rocmatrix.runtime import text_table
from rocmatrix.runtime.console import say, show, table, writing
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option, positional
from rocmatrix.runtime.output.whole_file import write_whole
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.matrix.matrix import Cell, Matrix
    from rocmatrix.matrix.resolver import freshness
    from rocmatrix.matrix.resolver.judgement import Judged

SHOWN_AT_WORK = ("smoked", "two-gpu", "trained")  # the levels at which a card ran the probes


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Options of `cells`."""

    json: bool = option("print them as JSON, for programs", default=False)


@command(Cells, about="List the cells of the matrix: card, ROCm, PyTorch, verdict and why.")
def cells(args: Cells) -> None:
    """List the cells with their axes, their headline, and the level of the card on which each came farthest.

    After the written ones come those that were built here on request: derived, or with companions.
    """
    from rocmatrix.cli.commands.evidence import levels

    known = known_matrix()
    level, on_simulated = levels(known), levels(known, simulated=True)
    listed = [known.cell(name) for name in level]
    judged = _headlines(known, listed, level)
    if args.json:
        described = [_described(c, judged[c.name], level[c.name], on_simulated.get(c.name)) for c in listed]
        print_json({"schema": 1, "cells": described})
        return
    machine = hardware_here()
    here = machine.architectures
    ordered = sorted(listed, key=lambda c: _rank(c, here))
    _print_wrapped(_summary(ordered, here, machine.unusable))
    rows = (
        (c.name, c.architecture or "-", c.release.rocm or "-", c.release.torch, c.python, verdict, shown, c.why)
        for c in ordered
        for verdict in (judged[c.name].verdict,)
        for shown in ("; simulated: ".join(filter(None, (level[c.name], on_simulated.get(c.name)))),)
    )
    table(("CELL", "GPU", "ROCM", "TORCH", "PYTHON", "VERDICT", "LEVEL", "WHY"), rows)
    if "?" in level.values():
        say("level ?: the file of the evidence cannot be read; `./invokew evidence` prints why")
    rest = "any other combination that no rule calls broken is derived on request: --gpu, --rocm, --torch, --python"
    say("\n".join(text_table.wrapped(rest, text_table.width())))


def _print_wrapped(text: str) -> None:
    """Print a summary and an empty line."""
    print("\n".join([*text_table.wrapped(text, text_table.width()), ""]))


def _rank(cell: Cell, here: Collection[str]) -> tuple[bool, bool, tuple[float, ...], str]:
    """Return the order of cells: those of this machine first, then recommended ones, then the newest release."""
    from rocmatrix.matrix.resolver.freshness import age

    rocm, torch = age(cell.release)
    newest = tuple(-float(number) for number in (*rocm.release[:2], *torch.release[:2]))
    return not _fits(cell, here), not cell.recommended, newest, cell.name


def _fits(cell: Cell, here: Collection[str]) -> bool:
    return cell.architecture in here if here else cell.architecture is None


def _summary(cells: Sequence[Cell], here: Collection[str], unusable: str | None) -> str:
    """Return what there is, and what of it is for this machine, in a line each.

    Args:
        cells: those that are listed.
        here: architectures of this machine's cards.
        unusable: what card of this machine serves no run, and why; None where there is none.
    """
    usable = f"this machine has {', '.join(dict.fromkeys(here))}" if here else None
    machine = "; ".join(filter(None, (usable, unusable))) or "this machine has no AMD GPU"
    own = [c.name for c in cells if _fits(c, here)]
    fitting = f"{own[0]} comes first" if own else "no cell is for it; --gpu derives one where no rule forbids it"
    names = {c.architecture for c in cells if c.architecture}
    count = f"{len(cells)} cells for {len(names)} architectures and the CPU"
    return f"{count}, {sum(c.recommended for c in cells)} of them recommended\n{machine}: {fitting}"


def _headlines(known: Matrix, listed: Iterable[Cell], level: dict[str, str]) -> dict[str, Judged]:
    from rocmatrix.matrix.resolver.judgement import judge

    shown = _at_work(known, level)
    return {
        c.name: judge(known, architecture=c.architecture, release=c.release, rules=c.rules, measured=shown)
        for c in listed
    }


def _described(cell: Cell, judged: Judged, level: str, simulated: str | None) -> dict[str, Any]:
    return {
        "name": cell.name,
        "architecture": cell.architecture,
        "rocm": cell.release.rocm,
        "torch": cell.release.torch,
        "python": cell.python,
        "companions": list(cell.companions),
        "written": cell.written,
        "verdict": judged.verdict,
        "because": judged.because,
        "holds_for": list(judged.cards),
        "other_cards": judged.others,
        "official": cell.official,
        "level": level,
        "simulated_level": simulated,
        "why": cell.why,
    }


def _at_work(known: Matrix, level: dict[str, str]) -> frozenset[tuple[str | None, str]]:
    """Return the combinations whose own records show the probes passing on the card."""
    return frozenset((c.architecture, c.release.name) for c in known.cells if level[c.name] in SHOWN_AT_WORK)


@dataclass(frozen=True, kw_only=True)
class Explain(Axes):
    """Options of `explain`."""

    python: str = option("Python version, such as 3.12", metavar="VERSION")
    json: bool = option("print the explanation as JSON, for programs", default=False)


@command(
    Explain, about="Explain the choice of a cell: the one that a request resolves to and why, or why it is refused."
)
def explain(args: Explain) -> None:
    """Print the explanation of a request; a refusal is one, too, and ends with status 0."""
    from rocmatrix.matrix.resolver import explanation

    known = known_matrix()
    here = hardware_here()
    request = args.request
    request, python = replace(request, python=None), request.python
    explained = explanation.explain(
        known,
        request,
        today=today(),
        cards=here.architectures,
        unusable=here.unusable,
        python=python,
        measured=_measured(known),
    )
    if args.json:
        print_json(explained.described())
        return
    from rocmatrix.matrix.resolver import text as terminal

    show(terminal.explanation(explained), width=terminal.PROSE_WIDTH)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Options of `matrix`."""

    json: bool = option("print the grid as JSON, for programs", default=False)
    html: str = option("write a page with the explanation of each square", metavar="PATH")


@command(Grid, about="Show every architecture with every release: verdict, cell, lock and recommendation.")
def matrix(args: Grid) -> None:
    """Print the grid, or write it as a page with the explanation of each square."""
    from rocmatrix.matrix.resolver import grid

    html = Path(args.html) if args.html else None
    known = known_matrix()
    whole = grid.grid(known, measured=_measured(known))
    if html is not None:
        from rocmatrix.matrix.resolver import html as html_page

        _write_page(html, html_page.page(known, whole, today=today()))
        say(f"{html}: {html.stat().st_size / 1e6:.1f} MB, {len(whole.rows)} x {len(whole.releases)} squares")
    if args.json:
        print_json(whole.described())
    elif html is None:
        from rocmatrix.matrix.resolver import text as terminal

        columns = text_table.width()
        machine = hardware_here()
        shown = terminal.grid(whole, width=columns, here=machine.architectures, unusable=machine.unusable)
        show(shown, width=columns)


@dataclass(frozen=True, kw_only=True)
class Outdated:
    """Options of `outdated`."""

    statements: bool = option("list every statement instead, with its sources and its age, oldest first", default=False)
    online: bool = option(
        "ask the indexes of the recommended cells as well; one that does not answer is only named, all are an error",
        default=False,
    )
    json: bool = option("print it as JSON, for programs", default=False)


@command(Outdated, about="List what is outdated: expired statements, and releases newer than the recommended ones.")
def outdated(args: Outdated) -> None:
    """List the statements that are to be checked again; no connection is opened unless `online` is asked for."""
    from rocmatrix.diagnosis import signature
    from rocmatrix.diagnosis.comparisons import forms
    from rocmatrix.doctor import statements as doctors
    from rocmatrix.matrix.resolver import freshness

    known = known_matrix()
    if args.statements:
        _list_statements(known, as_json=args.json)
        return
    answers = [freshness.query(known, index) for index in freshness.indexes(known)] if args.online else []
    others = chain(doctors.statements(ROOT), signature.statements(ROOT), forms.statements(ROOT))
    found = freshness.outdated(known, today=today(), answers=answers, others=others)
    if args.json:
        print_json(found.described())
    else:
        _show_outdated(found)
    if answers and all(answer.unheard_because for answer in answers):
        raise RocmatrixError("RM115", what=f"{len(answers)} indexes were asked", why=answers[0].unheard_because or "")


def _show_outdated(found: freshness.Outdated) -> None:
    _print_wrapped(_outdated_summary(found))
    if found.expired:
        table(("RULE", "EXPIRED", "SOURCE"), ((r.id, r.expires, r.evidence.summary) for r in found.expired))
    if found.aged:
        rows = ((s.file, s.entry, s.expires, s.evidence.summary) for s in found.aged)
        table(("FILE", "ENTRY", "EXPIRED", "SOURCE"), rows)
    table(("GPU", "RECOMMENDED", "NEWEST", "VERDICT", "NEWER", "CELLS"), _newest(found.newer))
    for answer in found.answers:
        news = answer.unheard_because and f"query failed: {answer.unheard_because}"
        say(f"{answer.index}: {news or ', '.join(answer.unknown) or 'nothing newer than the matrix has'}")


def _outdated_summary(found: freshness.Outdated) -> str:
    gpus = len({n.architecture for n in found.newer})
    return (
        f"{len(found.expired)} rules and {len(found.aged)} other statements expired by {found.today}\n"
        f"{len(found.newer)} releases are newer than the recommended one of {gpus} architectures and not known to be "
        "broken there; --json lists each"
    )


def _newest(newer: Iterable[freshness.Newer]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each architecture, this machine's first: its newest release, how many there are, their cells."""
    here = hardware_here().architectures
    by_gpu: dict[str | None, list[freshness.Newer]] = {}
    for each in newer:
        by_gpu.setdefault(each.architecture, []).append(each)
    for gpu, found in sorted(by_gpu.items(), key=lambda row: row[0] not in here):
        last = found[-1]
        cells = ", ".join(each.cell for each in found if each.cell)
        yield gpu or "-", last.recommended, last.release, last.verdict, str(len(found)), cells or "-"


def _measured(known: Matrix) -> frozenset[tuple[str | None, str]]:
    from rocmatrix.evidence import recorder

    if not recorder.evidence_file().exists():  # most checkouts have none, and reading it takes longer than arguing
        return frozenset()
    from rocmatrix.cli.commands.evidence import levels

    return _at_work(known, levels(known))


def _list_statements(known: Matrix, *, as_json: bool) -> None:
    from rocmatrix.doctor import statements as doctors
    from rocmatrix.matrix.resolver.statements import statements

    day = today()
    found = sorted((*statements(known), *doctors.statements(ROOT)), key=lambda s: (s.evidence.date, s.file, s.entry))
    if as_json:
        print_json({"schema": 1, "today": day, "statements": [s.described(day) for s in found]})
        return
    rows = ((str(s.age_days(day)), s.file, s.entry, "claim" if s.claim else s.says, s.evidence.summary) for s in found)
    table(("DAYS", "FILE", "ENTRY", "SAYS", "SOURCE"), rows)
    say(f"{len(found)} statements, {sum(s.expired(day) for s in found)} of them expired by {day}")


@dataclass(frozen=True, kw_only=True)
class KeepCell(Axes):
    """Options of `cell`."""

    action: str = positional("write the derived cell into matrix.yaml, and render it", metavar="add")


@command(KeepCell, about="Keep a derived cell in the repository: `cell add` writes it to matrix.yaml and renders it.")
def cell(args: KeepCell) -> None:
    """Write the cell that a request is derived as into matrix.yaml, and render it.

    Raises RM404 for another action than `add`, RM015 for a written cell, and what resolving raises.
    """
    if args.action != "add":
        advice = "The one thing to do with a cell here is `cell add`."
        raise RocmatrixError("RM404", what=f"cell {args.action}", next=advice)
    from rocmatrix.cli import generated
    from rocmatrix.matrix.loading import append
    from rocmatrix.matrix.resolver.resolve import resolve

    known = known_matrix()
    chosen = resolve(known, args.request, cards=hardware_here().architectures).cell
    append.add(known, chosen, ROOT, today=today())
    touched = generated.write(known_matrix(), ROOT)
    say(f"{chosen.name} is now in matrix.yaml: add the reason there; {len(touched)} files written")


def _write_page(path: Path, text: str) -> None:
    try:
        with writing(path, flag="--html"):
            write_whole(path, text.encode())
    except RocmatrixError as error:
        if error.code == "RM404":
            advice = "Give --html a file in a folder that exists."
            raise RocmatrixError("RM206", what=error.what, where=str(path), next=advice) from error
        raise
