"""Tasks that show what the matrix knows."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import REQUEST, FlagTask, request_of


@task
def cells(c: Context) -> None:
    """List the cells of the matrix: card, ROCm, PyTorch and why."""
    from rocmatrix.cli.commands import matrix

    matrix.cells()


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={axis: REQUEST[axis] for axis in ("rocm", "torch", "gpu", "cell")}
    | {"json": "print the argument as JSON, for programs"},
)
def explain(c: Context, rocm: str = "", torch: str = "", gpu: str = "", cell: str = "", json: bool = False) -> None:
    """Argue a verdict: the cell or the refusal, every rule that speaks, and its sources."""
    from rocmatrix.cli.commands import matrix

    matrix.explain(request_of(rocm, torch, gpu, cell), as_json=json)


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
        "online": "ask the indexes of the recommended cells as well; one that does not answer is only named",
        "json": "print it as JSON, for programs",
    },
)
def outdated(c: Context, online: bool = False, json: bool = False) -> None:
    """List expired rules, and releases newer than the recommended ones."""
    from rocmatrix.cli.commands import matrix

    matrix.outdated(online=online, as_json=json)
