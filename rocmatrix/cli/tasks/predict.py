"""The task that uses a trained model."""

from invoke.context import Context

from rocmatrix.cli.options.common import OfTrainer
from rocmatrix.cli.tasks.flags import TrainerOptions, TrainerTask, command


@command(OfTrainer, klass=TrainerTask)
def predict(c: Context, asked: OfTrainer, options: TrainerOptions) -> None:
    """Forecast with a finished run's model: natively on the CPU, where such a network takes milliseconds."""
    from rocmatrix.cli.commands import predict

    predict.predict(options, dry_run=asked.dry_run, as_json=asked.as_json)
