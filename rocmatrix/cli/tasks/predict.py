"""The task that uses a trained model."""

from typing import Any

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import TrainerTask


@task(klass=TrainerTask, auto_shortflags=False, help={"dry_run": "print exactly what would run, and run nothing"})
def predict(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Forecast with a finished run's model: natively on the CPU, where such a network takes milliseconds."""
    from rocmatrix.cli.commands import predict as command

    command.predict(options or {}, dry_run=dry_run)
