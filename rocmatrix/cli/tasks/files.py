"""Tasks that write what is committed."""

from invoke.context import Context
from invoke.tasks import task


@task(help={"check": "change nothing; fail when a file differs from what the matrix renders"})
def render(c: Context, check: bool = False) -> None:
    """Write images/, compose/, the tables of docs/support.md and docs/errors.md from matrix.yaml."""
    from rocmatrix.cli.commands import files

    files.render(check=check)


@task(
    auto_shortflags=False,
    help={
        "cell": "one cell (default: every release that cells use)",
        "all": "every release with every Python it was built for",
        "upgrade": "take the newest versions; recorded ones are kept otherwise",
    },
)
def lock(c: Context, cell: str = "", all: bool = False, upgrade: bool = False) -> None:
    """Resolve the wheels of cells or releases and write them with their hashes to matrix/."""
    from rocmatrix.cli.commands import files

    files.lock(cell=cell or None, everything=all, upgrade=upgrade)


@task
def pins(c: Context) -> None:
    """Compile requirements/*.in into hash-locked requirements/*.txt."""
    from rocmatrix.cli.commands import files

    files.pins()
