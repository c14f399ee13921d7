"""The tasks for what is done with a trained model next to forecasting."""

from typing import Any

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import TrainerTask

DRY_RUN = {"dry_run": "print exactly what would run, and run nothing"}


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def compress(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Make a finished run's model smaller (distilled, pruned, int8), with loss, bytes and time before and after."""
    from rocmatrix.cli.commands import models

    models.compress(options or {}, dry_run=dry_run)


@task(klass=TrainerTask, auto_shortflags=False, positional=["run"], help={**DRY_RUN, "run": "folder of a finished run"})
def report(c: Context, run: str, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Write one page on a finished run: losses, errors, what the model looks at, the split, the conventions."""
    from rocmatrix.cli.commands import models

    models.report(run, options or {}, dry_run=dry_run)
