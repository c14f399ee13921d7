"""Tasks that write what is committed."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.options.matrix import Lock
from rocmatrix.cli.tasks.flags import command


@task(help={"check": "change nothing; fail when a file differs from what the matrix renders"})
def render(c: Context, check: bool = False) -> None:
    """Write images/, compose/, the tables of docs/support.md and docs/errors.md from matrix.yaml."""
    from rocmatrix.cli.commands import files

    files.render(check=check)


@command(Lock)
def lock(c: Context, asked: Lock) -> None:
    """Resolve the wheels of cells or releases and write them with their hashes to matrix/."""
    from rocmatrix.cli.commands import files

    files.lock(cell=asked.cell or None, everything=asked.all, upgrade=asked.upgrade)


@task
def pins(c: Context) -> None:
    """Compile requirements/*.in into hash-locked requirements/*.txt."""
    from rocmatrix.cli.commands import files

    files.pins()
