"""The task that uses a trained model."""

from typing import Any

from invoke.context import Context

from rocmatrix.cli.options.common import DryRun
from rocmatrix.cli.tasks.flags import TrainerTask, command


@command(DryRun, klass=TrainerTask)
def predict(c: Context, asked: DryRun, options: dict[str, Any]) -> None:
    """Forecast with a finished run's model: natively on the CPU, where such a network takes milliseconds."""
    from rocmatrix.cli.commands import predict

    predict.predict(options, dry_run=asked.dry_run)
