"""Tasks that show what the matrix knows."""

from dataclasses import replace

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.options.matrix import Cell, Explain, Outdated
from rocmatrix.cli.tasks.flags import command


@task(auto_shortflags=False, help={"json": "print them as JSON, for programs"})
def cells(c: Context, json: bool = False) -> None:
    """List the cells of the matrix: card, ROCm, PyTorch, verdict and why."""
    from rocmatrix.cli.commands import matrix

    matrix.cells(as_json=json)


@command(Cell)
def cell(c: Context, asked: Cell) -> None:
    """Keep a derived cell in the repository: `cell add` writes it to matrix.yaml and renders it."""
    from rocmatrix.cli.commands import matrix

    matrix.cell(asked.action, asked.request)


@command(Explain)
def explain(c: Context, asked: Explain) -> None:
    """Explain which cell a request resolves to, or why it is refused."""
    from rocmatrix.cli.commands import matrix

    matrix.explain(replace(asked, python="").request, python=asked.python or None, as_json=asked.json)


@task(
    auto_shortflags=False,
    help={"json": "print the grid as JSON, for programs", "html": "write a page with the argument behind each square"},
)
def matrix(c: Context, json: bool = False, html: str = "") -> None:
    """Show every architecture with every release: verdict, cell, lock and recommendation."""
    from pathlib import Path

    from rocmatrix.cli.commands import matrix

    matrix.matrix(as_json=json, html=Path(html) if html else None)


@command(Outdated)
def outdated(c: Context, asked: Outdated) -> None:
    """List expired statements, and releases newer than the recommended ones."""
    from rocmatrix.cli.commands import matrix

    matrix.outdated(online=asked.online, as_json=asked.json, every=asked.statements)
