"""The tasks for what is done with a trained model next to forecasting."""

from dataclasses import dataclass

from invoke.context import Context

from rocmatrix.cli.options.common import OfTrainer
from rocmatrix.cli.tasks.flags import TrainerOptions, TrainerTask, command
from rocmatrix.runtime.option import positional


@command(OfTrainer, klass=TrainerTask)
def compress(c: Context, asked: OfTrainer, options: TrainerOptions) -> None:
    """Make a finished run's model smaller (distilled, pruned, int8), with loss, bytes and time before and after."""
    from rocmatrix.cli.commands import models

    models.compress(options, dry_run=asked.dry_run, as_json=asked.as_json)


@dataclass(frozen=True, kw_only=True)
class Report(OfTrainer):
    """Options of `report`."""

    run: str = positional("folder of a finished run")


@command(Report, klass=TrainerTask)
def report(c: Context, asked: Report, options: TrainerOptions) -> None:
    """Write one page on a finished run: losses, errors, what the model looks at, the split, the conventions."""
    from rocmatrix.cli.commands import models

    models.report(asked.run, options, dry_run=asked.dry_run, as_json=asked.as_json)
