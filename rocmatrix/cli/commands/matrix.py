"""Commands that show what the matrix knows: cells, an argument, the grid, what is past its day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import hardware_here, known_matrix, print_json, today
from rocmatrix.runtime.console import edge, say, show, table
from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    from rocmatrix.matrix.resolver.resolve import Request


@edge
def cells() -> None:
    """List the cells with their axes, and how far each is supported on the card that it came farthest on."""
    from rocmatrix.cli.commands.evidence import levels

    known = known_matrix()
    level = levels(known)
    rows = (
        (c.name, c.architecture or "-", c.release.rocm or "-", c.release.torch, c.python, level[c.name], c.why)
        for c in known.cells
    )
    table(("CELL", "GPU", "ROCM", "TORCH", "PYTHON", "LEVEL", "WHY"), rows)


@edge
def explain(request: Request, *, as_json: bool) -> None:
    """Print the argument for a request; a refusal is an argument too, and ends with status 0."""
    from rocmatrix.matrix.resolver import explanation as argument

    argued = argument.argue(known_matrix(), request, today=today(), cards=hardware_here().architectures)
    if as_json:
        print_json(argued.described())
        return
    from rocmatrix.matrix.resolver import text as terminal

    show(terminal.argument(argued), width=terminal.PROSE_WIDTH)


@edge
def matrix(*, as_json: bool, html: Path | None) -> None:
    """Print the grid, or write it to `html` as a page with the argument behind each square."""
    from rocmatrix.matrix.resolver import grid

    known = known_matrix()
    whole = grid.grid(known)
    if html is not None:
        from rocmatrix.matrix.resolver import html as page

        _write_page(html, page.page(known, whole, today=today()))
        say(f"{html}: {html.stat().st_size / 1e6:.1f} MB, {len(whole.rows)} x {len(whole.releases)} squares")
    if as_json:
        print_json(whole.described())
    elif html is None:
        from rocmatrix.matrix.resolver import text as terminal

        show(terminal.grid(whole), width=terminal.GRID_WIDTH)


@edge
def outdated(*, online: bool, as_json: bool) -> None:
    """List what asks to be looked at again; indexes are asked only where a person says so."""
    from rocmatrix.matrix.resolver import freshness as aging

    known = known_matrix()
    answers = [aging.ask(known, index) for index in aging.indexes(known)] if online else []
    found = aging.outdated(known, today=today(), answers=answers)
    if as_json:
        print_json(found.described())
        return
    say(f"{len(found.expired)} rules are past their day on {found.today}")
    if found.expired:
        table(("RULE", "EXPIRED", "SOURCE"), ((r.id, r.expires, r.evidence.words) for r in found.expired))
    say(f"{len(found.newer)} releases are newer than a recommended one and not known to be broken there")
    rows = ((n.architecture or "-", n.recommended, n.release, n.verdict, n.cell or "-") for n in found.newer)
    table(("GPU", "RECOMMENDED", "NEWER", "VERDICT", "CELL"), rows)
    for answer in found.answers:
        news = answer.unheard_because and f"not heard: {answer.unheard_because}"
        say(f"{answer.index}: {news or ', '.join(answer.unknown) or 'nothing newer than the matrix knows'}")


def _write_page(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        advice = "Give --html a file in a folder that exists."
        raise RocmatrixError("RM206", what=str(error.strerror), where=str(path), next=advice) from error
