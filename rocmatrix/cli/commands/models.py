"""The commands for what is done with a trained model: natively on the CPU, as such networks are small."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.cli.commands.predict import after_training
from rocmatrix.cli.options.command import TrainerOptions, command
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import positional


@command(
    TrainerCommandOptions,
    trainer="compress",
    about="Make a finished run's model smaller (distilled, pruned, int8), with loss, bytes and time before and after.",
)
def compress(args: TrainerCommandOptions, options: TrainerOptions) -> None:
    """Run the trainer's `compress`."""
    if not options.get("model"):
        raise RocmatrixError("RM404", what="compress needs --model, the folder of a finished run")
    after_training("compress", [], options, dry_run=args.dry_run, as_json=args.as_json)


@dataclass(frozen=True, kw_only=True)
class Report(TrainerCommandOptions):
    """Options of `report`."""

    run: str = positional("folder of a finished run")


@command(
    Report,
    trainer="report",
    about="Write one page on a finished run: losses, errors, the weight of each input, the split, the conventions.",
)
def report(args: Report, options: TrainerOptions) -> None:
    """Run the trainer's `report` on the folder of a run."""
    after_training("report", [args.run], options, dry_run=args.dry_run, as_json=args.as_json)
