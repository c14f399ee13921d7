"""The command that uses a trained model."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from rocmatrix.cli.commands import common
from rocmatrix.cli.options.command import TrainerOptions, command
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.runtime.console import say
from rocmatrix.runtime.paths import ROOT


@command(
    TrainerCommandOptions,
    trainer="predict",
    about="Forecast with a finished run's model: natively on the CPU, where such a network takes milliseconds.",
)
def predict(args: TrainerCommandOptions, options: TrainerOptions) -> None:
    """Run the trainer's `predict`."""
    after_training("predict", [], options, dry_run=args.dry_run, as_json=args.as_json)


def after_training(
    program: str, arguments: list[str], options: Mapping[str, Any], *, dry_run: bool, as_json: bool = False
) -> None:
    """Run a command of the trainer with the locked CPU wheels, or with the active environment's torch.

    Raises RM403 where no torch fits this machine's Python.

    Args:
        program: name of the trainer's command.
        arguments: arguments before the options.
        options: values by the name of the option; None is left out.
        dry_run: print the command and run nothing.
        as_json: print events as JSON lines; otherwise data alone, such as forecasts.
    """
    from rocmatrix.images import native_env
    from rocmatrix.jobs import job
    from rocmatrix.jobs import runner as launch

    runner = native_env.prepare(common.known_matrix(), ROOT, cell=None, install_wheels=not dry_run)
    argv = launch.native_argv(runner.python, [program, *arguments, *job.flags(options)])
    say(f"torch: {runner.why}")
    if dry_run:
        print(launch.Job(argv=argv, environment=None, why="").summary)
        return
    show = common.event_printer(as_json=as_json)
    done = launch.run(argv, environment=launch.native_environment(ROOT, os.environ), show=show)
    if done.status != 0:
        sys.exit(done.status)
