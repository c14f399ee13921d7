"""Tasks that show what the matrix knows."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import REQUEST, FlagTask, request_of


@task(auto_shortflags=False, help={"json": "print them as JSON, for programs"})
def cells(c: Context, json: bool = False) -> None:
    """List the cells of the matrix: card, ROCm, PyTorch, verdict and why."""
    from rocmatrix.cli.commands import matrix

    matrix.cells(as_json=json)


@task(
    klass=FlagTask,
    auto_shortflags=False,
    positional=["action"],
    help={axis: REQUEST[axis] for axis in ("rocm", "torch", "gpu", "cell", "python")} | {"action": "add"},
)
def cell(
    c: Context, action: str, rocm: str = "", torch: str = "", gpu: str = "", cell: str = "", python: str = ""
) -> None:
    """Keep a derived cell in the repository: `cell add` writes it to matrix.yaml and renders it."""
    from rocmatrix.cli.commands import matrix

    matrix.cell(action, request_of(rocm, torch, gpu, cell, python=python))


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={axis: REQUEST[axis] for axis in ("rocm", "torch", "gpu", "cell")}
    | {"python": "Python version, such as 3.12", "json": "print the argument as JSON, for programs"},
)
def explain(
    c: Context, rocm: str = "", torch: str = "", gpu: str = "", cell: str = "", python: str = "", json: bool = False
) -> None:
    """Explain which cell a request resolves to, or why it is refused."""
    from rocmatrix.cli.commands import matrix

    matrix.explain(request_of(rocm, torch, gpu, cell), python=python or None, as_json=json)


@task(
    auto_shortflags=False,
    help={"json": "print the grid as JSON, for programs", "html": "write a page with the argument behind each square"},
)
def matrix(c: Context, json: bool = False, html: str = "") -> None:
    """Show every architecture with every release: verdict, cell, lock and recommendation."""
    from pathlib import Path

    from rocmatrix.cli.commands import matrix

    matrix.matrix(as_json=json, html=Path(html) if html else None)


@task(
    auto_shortflags=False,
    help={
        "statements": "list every statement instead, with its sources and its age, oldest first",
        "online": "ask the indexes of the recommended cells as well; one that does not answer is only named",
        "json": "print it as JSON, for programs",
    },
)
def outdated(c: Context, online: bool = False, json: bool = False, statements: bool = False) -> None:
    """List expired statements, and releases newer than the recommended ones."""
    from rocmatrix.cli.commands import matrix

    matrix.outdated(online=online, as_json=json, every=statements)
