"""Tasks for people who change rocmatrix."""

from invoke.context import Context
from invoke.tasks import task


@task(
    positional=[],
    help={"paths": "test files or folders (default: all)", "only": "run tests whose name matches, as pytest -k does"},
)
def test(c: Context, paths: str = "", only: str = "") -> None:
    """Run every test this machine can run, and count what was left out and why."""
    from rocmatrix.cli.commands import project

    project.test(paths=paths, only=only)


@task
def lint(c: Context) -> None:
    """Run linter, formatter check, type checker, the contracts of imports and the drift check of generated files."""
    from rocmatrix.cli.commands import project

    project.lint()
