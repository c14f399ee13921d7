"""Tasks for people who change rocmatrix."""

from invoke.context import Context
from invoke.tasks import task


@task(
    positional=[],
    help={
        "paths": "test files or folders (default: all)",
        "only": "run tests whose name matches, as pytest -k does",
        "room": "run the unit tests of one room or module, such as trainer/engine or rocmatrix/matrix/gfx",
        "mutants": "change the modules that decide, one mutant at a time, and run their tests on each (takes hours)",
        "module": "with --mutants: one module of benchmarks/mutants/modules.toml, such as rocmatrix/matrix/rule.py",
    },
)
def test(c: Context, paths: str = "", only: str = "", room: str = "", mutants: bool = False, module: str = "") -> None:
    """Run every test this machine can run, and count what was left out and why."""
    from rocmatrix.cli.commands import project

    if mutants or module:
        project.test_mutants(module=module, others=[paths, only, room] if mutants else ["--module alone"])
    else:
        project.test(paths=paths, only=only, room=room)


@task
def lint(c: Context) -> None:
    """Run linter, formatter check, type checker, import contracts, wording, Args sections, drift of generated files."""
    from rocmatrix.cli.commands import project

    project.lint()
